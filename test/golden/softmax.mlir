// _softmax(f32[4,8] -1 false)
module @tt {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %2 = "stablehlo.maximum"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = "stablehlo.reshape"(%1) : (tensor<4xf32>) -> tensor<4x1xf32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %5 = "stablehlo.subtract"(%arg0, %4) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %6 = "stablehlo.exponential"(%5) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %7 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %8 = "stablehlo.reduce"(%6, %7) ({
    ^bb0(%a2: tensor<f32>, %a3: tensor<f32>):
      %9 = "stablehlo.add"(%a2, %a3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %10 = "stablehlo.reshape"(%8) : (tensor<4xf32>) -> tensor<4x1xf32>
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %12 = "stablehlo.divide"(%6, %11) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %12 : tensor<4x8xf32>
  }
}

// _log_softmax(bf16[4,8] 0 false)
module @tt {
  func.func public @main(%arg0: tensor<4x8xbf16>) -> (tensor<4x8xbf16>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %1 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %3 = "stablehlo.maximum"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = "stablehlo.reshape"(%2) : (tensor<8xf32>) -> tensor<1x8xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %6 = "stablehlo.subtract"(%0, %5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %7 = "stablehlo.exponential"(%6) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %8 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %9 = "stablehlo.reduce"(%7, %8) ({
    ^bb0(%a2: tensor<f32>, %a3: tensor<f32>):
      %10 = "stablehlo.add"(%a2, %a3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
    %11 = "stablehlo.reshape"(%9) : (tensor<8xf32>) -> tensor<1x8xf32>
    %12 = "stablehlo.log"(%11) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %13 = "stablehlo.broadcast_in_dim"(%12) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %14 = "stablehlo.subtract"(%6, %13) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %15 = "stablehlo.convert"(%14) : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    func.return %15 : tensor<4x8xbf16>
  }
}

