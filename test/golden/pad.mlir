// constant_pad_nd(f32[2,3] [1,-1] 0.5)
module @tt {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
    %0 = "stablehlo.constant"() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.pad"(%arg0, %0) {edge_padding_low = array<i64: 0, 1>, edge_padding_high = array<i64: 0, -1>, interior_padding = array<i64: 0, 0>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    func.return %1 : tensor<2x3xf32>
  }
}

// reflection_pad1d(f32[2,6] [2,1])
module @tt {
  func.func public @main(%arg0: tensor<2x6xf32>) -> (tensor<2x9xf32>) {
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x2xf32>
    %1 = "stablehlo.reverse"(%0) {dimensions = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 4>, limit_indices = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x1xf32>
    %3 = "stablehlo.concatenate"(%1, %arg0, %2) {dimension = 1 : i64} : (tensor<2x2xf32>, tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x9xf32>
    func.return %3 : tensor<2x9xf32>
  }
}

