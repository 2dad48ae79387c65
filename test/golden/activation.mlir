// gelu(f32[4,8] 'tanh')
module @tt {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.multiply"(%arg0, %arg0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = "stablehlo.multiply"(%0, %arg0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = "stablehlo.constant"() {value = dense<4.471500e-02> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %5 = "stablehlo.add"(%arg0, %4) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %6 = "stablehlo.constant"() {value = dense<7.978846e-01> : tensor<f32>} : () -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %8 = "stablehlo.multiply"(%5, %7) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %9 = "stablehlo.tanh"(%8) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %10 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %12 = "stablehlo.add"(%9, %11) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %13 = "stablehlo.constant"() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
    %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %15 = "stablehlo.multiply"(%arg0, %14) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %16 = "stablehlo.multiply"(%15, %12) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %16 : tensor<4x8xf32>
  }
}

// gelu(bf16[8] 'none')
module @tt {
  func.func public @main(%arg0: tensor<8xbf16>) -> (tensor<8xf32>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<8xbf16>) -> tensor<8xf32>
    %1 = "stablehlo.constant"() {value = dense<7.07106769e-01> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
    %3 = "stablehlo.multiply"(%0, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = "chlo.erf"(%3) : (tensor<8xf32>) -> tensor<8xf32>
    %5 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
    %7 = "stablehlo.add"(%4, %6) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %8 = "stablehlo.constant"() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
    %10 = "stablehlo.multiply"(%0, %9) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %11 = "stablehlo.multiply"(%10, %7) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %11 : tensor<8xf32>
  }
}

// glu(f32[4,8] -1)
module @tt {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x4xf32>) {
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 4>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %1 = "stablehlo.logistic"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %3 = "stablehlo.multiply"(%2, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %3 : tensor<4x4xf32>
  }
}

