// sum(i32[4,3] none)
module @tt {
  func.func public @main(%arg0: tensor<4x3xi32>) -> (tensor<i64>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<4x3xi32>) -> tensor<4x3xi64>
    %1 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %2 = "stablehlo.reduce"(%0, %1) ({
    ^bb0(%a0: tensor<i64>, %a1: tensor<i64>):
      %3 = "stablehlo.add"(%a0, %a1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%3) : (tensor<i64>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x3xi64>, tensor<i64>) -> tensor<i64>
    func.return %2 : tensor<i64>
  }
}

// sum.dim_IntList(bf16[4,3] [0] false none)
module @tt {
  func.func public @main(%arg0: tensor<4x3xbf16>) -> (tensor<3xbf16>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<4x3xbf16>) -> tensor<4x3xf32>
    %1 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %3 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %4 = "stablehlo.convert"(%2) : (tensor<3xf32>) -> tensor<3xbf16>
    func.return %4 : tensor<3xbf16>
  }
}

// amax(f32[4,3] [1] true)
module @tt {
  func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<4x1xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %2 = "stablehlo.maximum"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = "stablehlo.reshape"(%1) : (tensor<4xf32>) -> tensor<4x1xf32>
    func.return %3 : tensor<4x1xf32>
  }
}

// argmax(f32[4,3] 1 false)
module @tt {
  func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<4xi64>) {
    %0 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<4x3xi32>
    %1 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.constant"() {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %3:2 = "stablehlo.reduce"(%arg0, %0, %1, %2) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<i32>, %a2: tensor<f32>, %a3: tensor<i32>):
      %4 = "stablehlo.compare"(%a0, %a2) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = "stablehlo.compare"(%a0, %a2) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = "stablehlo.compare"(%a0, %a0) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = "stablehlo.or"(%4, %6) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %8 = "stablehlo.compare"(%a2, %a2) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = "stablehlo.and"(%6, %8) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %10 = "stablehlo.or"(%5, %9) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %11 = "stablehlo.compare"(%a1, %a3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %12 = "stablehlo.select"(%10, %11, %7) : (tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>
      %13 = "stablehlo.select"(%12, %a0, %a2) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %14 = "stablehlo.select"(%12, %a1, %a3) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%13, %14) : (tensor<f32>, tensor<i32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x3xf32>, tensor<4x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    %15 = "stablehlo.convert"(%3#1) : (tensor<4xi32>) -> tensor<4xi64>
    func.return %15 : tensor<4xi64>
  }
}

// var.correction(f32[4,3] [1] 1 false)
module @tt {
  func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<4xf32>) {
    %0 = "stablehlo.constant"() {value = dense<3.0e+00> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %1) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %3 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = "stablehlo.reshape"(%2) : (tensor<4xf32>) -> tensor<4x1xf32>
    %5 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x1xf32>
    %6 = "stablehlo.divide"(%4, %5) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<4x3xf32>
    %8 = "stablehlo.subtract"(%arg0, %7) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %9 = "stablehlo.multiply"(%8, %8) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %10 = "stablehlo.reduce"(%9, %1) ({
    ^bb0(%a2: tensor<f32>, %a3: tensor<f32>):
      %11 = "stablehlo.add"(%a2, %a3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %12 = "stablehlo.constant"() {value = dense<2.0e+00> : tensor<f32>} : () -> tensor<f32>
    %13 = "stablehlo.broadcast_in_dim"(%12) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %14 = "stablehlo.divide"(%10, %13) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %14 : tensor<4xf32>
  }
}

