// mm(f32[2,3] f32[3,4])
module @tt {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    func.return %0 : tensor<2x4xf32>
  }
}

// mm(bf16[2,3] bf16[3,4])
module @tt {
  func.func public @main(%arg0: tensor<2x3xbf16>, %arg1: tensor<3x4xbf16>) -> (tensor<2x4xbf16>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
    %1 = "stablehlo.convert"(%0) : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    func.return %1 : tensor<2x4xbf16>
  }
}

// mm(i64[2,3] i64[3,4])
module @tt {
  func.func public @main(%arg0: tensor<2x3xi64>, %arg1: tensor<3x4xi64>) -> (tensor<2x4xi64>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x3xi64>) -> tensor<2x3x4xi64>
    %1 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 1, 2>} : (tensor<3x4xi64>) -> tensor<2x3x4xi64>
    %2 = "stablehlo.multiply"(%0, %1) : (tensor<2x3x4xi64>, tensor<2x3x4xi64>) -> tensor<2x3x4xi64>
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %4 = "stablehlo.reduce"(%2, %3) ({
    ^bb0(%a0: tensor<i64>, %a1: tensor<i64>):
      %5 = "stablehlo.add"(%a0, %a1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%5) : (tensor<i64>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3x4xi64>, tensor<i64>) -> tensor<2x4xi64>
    func.return %4 : tensor<2x4xi64>
  }
}

// addmm(f32[4] f32[2,3] f32[3,4] 1 1)
module @tt {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
    %0 = "stablehlo.dot_general"(%arg1, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
    %2 = "stablehlo.add"(%1, %0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    func.return %2 : tensor<2x4xf32>
  }
}

// bmm(f16[2,3,4] f16[2,4,5])
module @tt {
  func.func public @main(%arg0: tensor<2x3x4xf16>, %arg1: tensor<2x4x5xf16>) -> (tensor<2x3x5xf16>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3x4xf16>, tensor<2x4x5xf16>) -> tensor<2x3x5xf32>
    %1 = "stablehlo.convert"(%0) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf16>
    func.return %1 : tensor<2x3x5xf16>
  }
}

