// permute(f32[2,3,4] [2,0,1])
module @tt {
  func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>) {
    %0 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    func.return %0 : tensor<4x2x3xf32>
  }
}

// slice.Tensor(f32[8,3] 0 1 7 2)
module @tt {
  func.func public @main(%arg0: tensor<8x3xf32>) -> (tensor<3x3xf32>) {
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 7, 3>, strides = array<i64: 2, 1>} : (tensor<8x3xf32>) -> tensor<3x3xf32>
    func.return %0 : tensor<3x3xf32>
  }
}

