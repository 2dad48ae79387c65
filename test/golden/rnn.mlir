// _thnn_fused_lstm_cell(f32[2,16] f32[2,16] f32[2,4] none none)
module @tt {
  func.func public @main(%arg0: tensor<2x16xf32>, %arg1: tensor<2x16xf32>, %arg2: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x16xf32>) {
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
    %2 = "stablehlo.logistic"(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %3 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 4>, limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
    %4 = "stablehlo.logistic"(%3) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 8>, limit_indices = array<i64: 2, 12>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
    %6 = "stablehlo.tanh"(%5) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %7 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 12>, limit_indices = array<i64: 2, 16>, strides = array<i64: 1, 1>} : (tensor<2x16xf32>) -> tensor<2x4xf32>
    %8 = "stablehlo.logistic"(%7) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %9 = "stablehlo.multiply"(%2, %6) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %10 = "stablehlo.multiply"(%4, %arg2) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %11 = "stablehlo.add"(%10, %9) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %12 = "stablehlo.tanh"(%11) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %13 = "stablehlo.multiply"(%8, %12) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %14 = "stablehlo.concatenate"(%2, %4, %6, %8) {dimension = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x16xf32>
    func.return %13, %11, %14 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x16xf32>
  }
}

