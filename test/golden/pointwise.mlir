// where.self(i1[4,1] f32[4,3] f32[3])
module @tt {
  func.func public @main(%arg0: tensor<4x1xi1>, %arg1: tensor<4x3xf32>, %arg2: tensor<3xf32>) -> (tensor<4x3xf32>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xi1>) -> tensor<4x3xi1>
    %1 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
    %2 = "stablehlo.select"(%0, %arg1, %1) : (tensor<4x3xi1>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    func.return %2 : tensor<4x3xf32>
  }
}

// clamp(f32[4] 0.0 none)
module @tt {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %2 = "stablehlo.maximum"(%arg0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %2 : tensor<4xf32>
  }
}

