// cumsum(f32[40] 0 none)
module @tt {
  func.func public @main(%arg0: tensor<40xf32>) -> (tensor<40xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.pad"(%arg0, %0) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 8>, interior_padding = array<i64: 0>} : (tensor<40xf32>, tensor<f32>) -> tensor<48xf32>
    %2 = "stablehlo.reshape"(%1) : (tensor<48xf32>) -> tensor<3x16xf32>
    %3 = "stablehlo.reduce_window"(%2, %0) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %4 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 1, 16>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [15, 0]]> : tensor<2x2xi64>} : (tensor<3x16xf32>, tensor<f32>) -> tensor<3x16xf32>
    %5 = "stablehlo.slice"(%3) {start_indices = array<i64: 0, 15>, limit_indices = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x1xf32>
    %6 = "stablehlo.reshape"(%5) : (tensor<3x1xf32>) -> tensor<3xf32>
    %7 = "stablehlo.reduce_window"(%6, %0) ({
    ^bb0(%a2: tensor<f32>, %a3: tensor<f32>):
      %8 = "stablehlo.add"(%a2, %a3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 3>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[2, 0]]> : tensor<1x2xi64>} : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %9 = "stablehlo.pad"(%7, %0) {edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: -1>, interior_padding = array<i64: 0>} : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %10 = "stablehlo.reshape"(%9) : (tensor<3xf32>) -> tensor<3x1xf32>
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<3x1xf32>) -> tensor<3x16xf32>
    %12 = "stablehlo.add"(%11, %3) : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
    %13 = "stablehlo.reshape"(%12) : (tensor<3x16xf32>) -> tensor<48xf32>
    %14 = "stablehlo.slice"(%13) {start_indices = array<i64: 0>, limit_indices = array<i64: 40>, strides = array<i64: 1>} : (tensor<48xf32>) -> tensor<40xf32>
    func.return %14 : tensor<40xf32>
  }
}

