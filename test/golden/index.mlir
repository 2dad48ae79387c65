// index.Tensor(f32[4,5] {i64[3]})
module @tt {
  func.func public @main(%arg0: tensor<4x5xf32>, %arg1: tensor<3xi64>) -> (tensor<3x5xf32>, tensor<2xi64>) {
    %0 = "stablehlo.constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
    %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3xi64>
    %2 = "stablehlo.compare"(%arg1, %1) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %3 = "stablehlo.constant"() {value = dense<-4> : tensor<i64>} : () -> tensor<i64>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3xi64>
    %5 = "stablehlo.compare"(%arg1, %4) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %6 = "stablehlo.or"(%5, %2) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
    %7 = "stablehlo.constant"() {value = dense<-9223372036854775808> : tensor<i64>} : () -> tensor<i64>
    %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3xi64>
    %9 = "stablehlo.select"(%6, %arg1, %8) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %10 = "stablehlo.reduce"(%9, %7) ({
    ^bb0(%a0: tensor<i64>, %a1: tensor<i64>):
      %11 = "stablehlo.maximum"(%a0, %a1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%11) : (tensor<i64>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
    %12 = "stablehlo.compare"(%10, %7) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %13 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3xi64>
    %15 = "stablehlo.compare"(%arg1, %14) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %16 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3xi64>
    %17 = "stablehlo.add"(%arg1, %16) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %18 = "stablehlo.select"(%15, %17, %arg1) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %19 = "stablehlo.convert"(%18) : (tensor<3xi64>) -> tensor<3xi32>
    %20 = "stablehlo.gather"(%arg0, %19) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>, indices_are_sorted = false} : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<3x5xf32>
    %21 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %22 = "stablehlo.select"(%12, %21, %13) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %23 = "stablehlo.select"(%12, %10, %13) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %24 = "stablehlo.reshape"(%22) : (tensor<i64>) -> tensor<1xi64>
    %25 = "stablehlo.reshape"(%23) : (tensor<i64>) -> tensor<1xi64>
    %26 = "stablehlo.concatenate"(%24, %25) {dimension = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    func.return %20, %26 : tensor<3x5xf32>, tensor<2xi64>
  }
}

