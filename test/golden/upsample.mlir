// upsample_nearest2d(f32[1,2,4,4] [8,8] none none)
module @tt {
  func.func public @main(%arg0: tensor<1x2x4x4xf32>) -> (tensor<1x2x8x8xf32>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4x2xf32>
    %1 = "stablehlo.reshape"(%0) : (tensor<1x2x4x4x2xf32>) -> tensor<1x2x4x8xf32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 0, 1, 2, 4>} : (tensor<1x2x4x8xf32>) -> tensor<1x2x4x2x8xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<1x2x4x2x8xf32>) -> tensor<1x2x8x8xf32>
    func.return %3 : tensor<1x2x8x8xf32>
  }
}

// upsample_bilinear2d(f32[1,2,4,4] [7,7] false none none)
module @tt {
  func.func public @main(%arg0: tensor<1x2x4x4xf32>) -> (tensor<1x2x7x7xf32>) {
    %0 = "stablehlo.constant"() {value = dense<[[0, 1], [0, 1], [0, 1], [1, 2], [2, 3], [2, 3], [3, 3]]> : tensor<7x2xi32>} : () -> tensor<7x2xi32>
    %1 = "stablehlo.constant"() {value = dense<[[1.0e+00, 0.0e+00], [6.428571e-01, 3.57142925e-01], [7.142854e-02, 9.28571463e-01], [5.0e-01, 5.0e-01], [9.285712e-01, 7.14287758e-02], [3.571427e-01, 6.428573e-01], [7.85714149e-01, 2.14285851e-01]]> : tensor<7x2xf32>} : () -> tensor<7x2xf32>
    %2 = "stablehlo.gather"(%arg0, %0) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 2], collapsed_slice_dims = [3], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [3], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 4, 1>, indices_are_sorted = false} : (tensor<1x2x4x4xf32>, tensor<7x2xi32>) -> tensor<1x2x4x7x2xf32>
    %3 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 3, 4>} : (tensor<7x2xf32>) -> tensor<1x2x4x7x2xf32>
    %4 = "stablehlo.multiply"(%2, %3) : (tensor<1x2x4x7x2xf32>, tensor<1x2x4x7x2xf32>) -> tensor<1x2x4x7x2xf32>
    %5 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %6 = "stablehlo.reduce"(%4, %5) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %7 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 4>} : (tensor<1x2x4x7x2xf32>, tensor<f32>) -> tensor<1x2x4x7xf32>
    %8 = "stablehlo.constant"() {value = dense<[[0, 1], [0, 1], [0, 1], [1, 2], [2, 3], [2, 3], [3, 3]]> : tensor<7x2xi32>} : () -> tensor<7x2xi32>
    %9 = "stablehlo.constant"() {value = dense<[[1.0e+00, 0.0e+00], [6.428571e-01, 3.57142925e-01], [7.142854e-02, 9.28571463e-01], [5.0e-01, 5.0e-01], [9.285712e-01, 7.14287758e-02], [3.571427e-01, 6.428573e-01], [7.85714149e-01, 2.14285851e-01]]> : tensor<7x2xf32>} : () -> tensor<7x2xf32>
    %10 = "stablehlo.gather"(%6, %8) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 4], collapsed_slice_dims = [2], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [2], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 1, 7>, indices_are_sorted = false} : (tensor<1x2x4x7xf32>, tensor<7x2xi32>) -> tensor<1x2x7x2x7xf32>
    %11 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64: 2, 3>} : (tensor<7x2xf32>) -> tensor<1x2x7x2x7xf32>
    %12 = "stablehlo.multiply"(%10, %11) : (tensor<1x2x7x2x7xf32>, tensor<1x2x7x2x7xf32>) -> tensor<1x2x7x2x7xf32>
    %13 = "stablehlo.reduce"(%12, %5) ({
    ^bb0(%a2: tensor<f32>, %a3: tensor<f32>):
      %14 = "stablehlo.add"(%a2, %a3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%14) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<1x2x7x2x7xf32>, tensor<f32>) -> tensor<1x2x7x7xf32>
    func.return %13 : tensor<1x2x7x7xf32>
  }
}

