// embedding(f32[10,4] i64[2,3] -1 false false)
module @tt {
  func.func public @main(%arg0: tensor<10x4xf32>, %arg1: tensor<2x3xi64>) -> (tensor<2x3x4xf32>, tensor<2xi64>) {
    %0 = "stablehlo.constant"() {value = dense<10> : tensor<i64>} : () -> tensor<i64>
    %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<2x3xi64>
    %2 = "stablehlo.compare"(%arg1, %1) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<2x3xi64>
    %5 = "stablehlo.compare"(%arg1, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>
    %6 = "stablehlo.or"(%5, %2) : (tensor<2x3xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
    %7 = "stablehlo.constant"() {value = dense<-9223372036854775808> : tensor<i64>} : () -> tensor<i64>
    %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<2x3xi64>
    %9 = "stablehlo.select"(%6, %arg1, %8) : (tensor<2x3xi1>, tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
    %10 = "stablehlo.reduce"(%9, %7) ({
    ^bb0(%a0: tensor<i64>, %a1: tensor<i64>):
      %11 = "stablehlo.maximum"(%a0, %a1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%11) : (tensor<i64>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<2x3xi64>, tensor<i64>) -> tensor<i64>
    %12 = "stablehlo.compare"(%10, %7) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %13 = "stablehlo.convert"(%arg1) : (tensor<2x3xi64>) -> tensor<2x3xi32>
    %14 = "stablehlo.gather"(%arg0, %13) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<10x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
    %15 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %16 = "stablehlo.select"(%12, %15, %3) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %17 = "stablehlo.select"(%12, %10, %3) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %18 = "stablehlo.reshape"(%16) : (tensor<i64>) -> tensor<1xi64>
    %19 = "stablehlo.reshape"(%17) : (tensor<i64>) -> tensor<1xi64>
    %20 = "stablehlo.concatenate"(%18, %19) {dimension = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    func.return %14, %20 : tensor<2x3x4xf32>, tensor<2xi64>
  }
}

