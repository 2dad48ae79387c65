// topk(f32[4,8] 3 1 true true)
module @tt {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>) {
    %0 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<4x8xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>, %a2: tensor<i32>, %a3: tensor<i32>):
      %2 = "stablehlo.compare"(%a0, %a1) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = "stablehlo.compare"(%a1, %a1) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = "stablehlo.compare"(%a0, %a0) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = "stablehlo.and"(%4, %3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %6 = "stablehlo.or"(%2, %5) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }) {dimension = 1 : i64, is_stable = true} : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    %7 = "stablehlo.convert"(%1#1) : (tensor<4x8xi32>) -> tensor<4x8xi64>
    %8 = "stablehlo.slice"(%1#0) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x3xf32>
    %9 = "stablehlo.slice"(%7) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x8xi64>) -> tensor<4x3xi64>
    func.return %8, %9 : tensor<4x3xf32>, tensor<4x3xi64>
  }
}

// sort.stable(i32[8] true 0 true)
module @tt {
  func.func public @main(%arg0: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi64>) {
    %0 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<8xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) ({
    ^bb0(%a0: tensor<i32>, %a1: tensor<i32>, %a2: tensor<i32>, %a3: tensor<i32>):
      %2 = "stablehlo.compare"(%a0, %a1) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%2) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
    %3 = "stablehlo.convert"(%1#1) : (tensor<8xi32>) -> tensor<8xi64>
    func.return %1#0, %3 : tensor<8xi32>, tensor<8xi64>
  }
}

