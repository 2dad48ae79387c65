// add.Tensor(bf16[4,1] f32[3] 1)
module @tt {
  func.func public @main(%arg0: tensor<4x1xbf16>, %arg1: tensor<3xf32>) -> (tensor<4x3xf32>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<4x1xbf16>) -> tensor<4x1xf32>
    %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<4x3xf32>
    %2 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
    %3 = "stablehlo.add"(%1, %2) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    func.return %3 : tensor<4x3xf32>
  }
}

// add.Tensor(i32[4] i64[4] 2)
module @tt {
  func.func public @main(%arg0: tensor<4xi32>, %arg1: tensor<4xi64>) -> (tensor<4xi64>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<4xi32>) -> tensor<4xi64>
    %1 = "stablehlo.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4xi64>
    %3 = "stablehlo.multiply"(%arg1, %2) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    %4 = "stablehlo.add"(%0, %3) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    func.return %4 : tensor<4xi64>
  }
}

// div.Tensor(i32[4] i32[4])
module @tt {
  func.func public @main(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) -> (tensor<4xf32>) {
    %0 = "stablehlo.convert"(%arg1) : (tensor<4xi32>) -> tensor<4xf32>
    %1 = "stablehlo.convert"(%arg0) : (tensor<4xi32>) -> tensor<4xf32>
    %2 = "stablehlo.divide"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %2 : tensor<4xf32>
  }
}

// floor_divide(i32[4] i32[4])
module @tt {
  func.func public @main(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) -> (tensor<4xi32>, tensor<2xi64>) {
    %0 = "stablehlo.divide"(%arg0, %arg1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %1 = "stablehlo.multiply"(%0, %arg1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %2 = "stablehlo.compare"(%1, %arg0) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<4xi32>
    %5 = "stablehlo.compare"(%arg1, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %6 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<4xi32>
    %7 = "stablehlo.compare"(%arg0, %6) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %8 = "stablehlo.compare"(%7, %5) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type UNSIGNED>} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %9 = "stablehlo.and"(%2, %8) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %10 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<4xi32>
    %12 = "stablehlo.subtract"(%0, %11) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %13 = "stablehlo.select"(%9, %12, %0) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %14 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<4xi32>
    %15 = "stablehlo.compare"(%arg1, %14) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %16 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %17 = "stablehlo.reduce"(%15, %16) ({
    ^bb0(%a0: tensor<i1>, %a1: tensor<i1>):
      %18 = "stablehlo.or"(%a0, %a1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%18) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
    %19 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %20 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %21 = "stablehlo.select"(%17, %20, %19) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %22 = "stablehlo.reshape"(%21) : (tensor<i64>) -> tensor<1xi64>
    %23 = "stablehlo.reshape"(%19) : (tensor<i64>) -> tensor<1xi64>
    %24 = "stablehlo.concatenate"(%22, %23) {dimension = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    func.return %13, %24 : tensor<4xi32>, tensor<2xi64>
  }
}

// remainder.Tensor(f32[4] f32[4])
module @tt {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = "stablehlo.remainder"(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %3 = "stablehlo.compare"(%0, %2) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %4 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %5 = "stablehlo.compare"(%arg1, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %6 = "stablehlo.compare"(%5, %3) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type UNSIGNED>} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %7 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %8 = "stablehlo.compare"(%0, %7) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %9 = "stablehlo.and"(%8, %6) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %10 = "stablehlo.add"(%0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %11 = "stablehlo.select"(%9, %10, %0) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %11 : tensor<4xf32>
  }
}

