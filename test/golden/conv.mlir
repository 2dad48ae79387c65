// convolution(f32[2,3,8,8] f32[4,3,3,3] f32[4] [1,1] [1,1] [1,1] false [0,0] 1)
module @tt {
  func.func public @main(%arg0: tensor<2x3x8x8xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<4xf32>) -> (tensor<2x4x8x8xf32>) {
    %0 = "stablehlo.convolution"(%arg0, %arg1) {window_strides = array<i64: 1, 1>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
    %1 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    func.return %2 : tensor<2x4x8x8xf32>
  }
}

// convolution(f32[1,4,5] f32[4,2,3] none [2] [1] [1] true [1] 2)
module @tt {
  func.func public @main(%arg0: tensor<1x4x5xf32>, %arg1: tensor<4x2x3xf32>) -> (tensor<1x4x10xf32>) {
    %0 = "stablehlo.reshape"(%arg1) : (tensor<4x2x3xf32>) -> tensor<2x2x2x3xf32>
    %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x2x2x3xf32>) -> tensor<2x2x2x3xf32>
    %2 = "stablehlo.reshape"(%1) : (tensor<2x2x2x3xf32>) -> tensor<4x2x3xf32>
    %3 = "stablehlo.reverse"(%2) {dimensions = array<i64: 2>} : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
    %4 = "stablehlo.convolution"(%arg0, %3) {window_strides = array<i64: 1>, padding = dense<[[1, 2]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 2>, rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<1x4x5xf32>, tensor<4x2x3xf32>) -> tensor<1x4x10xf32>
    func.return %4 : tensor<1x4x10xf32>
  }
}

