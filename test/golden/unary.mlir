// tanh(f16[4])
module @tt {
  func.func public @main(%arg0: tensor<4xf16>) -> (tensor<4xf32>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<4xf16>) -> tensor<4xf32>
    %1 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }
}

// isnan(f32[4])
module @tt {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xi1>) {
    %0 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    func.return %0 : tensor<4xi1>
  }
}

// bitwise_not(i1[4])
module @tt {
  func.func public @main(%arg0: tensor<4xi1>) -> (tensor<4xi1>) {
    %0 = "stablehlo.not"(%arg0) : (tensor<4xi1>) -> tensor<4xi1>
    func.return %0 : tensor<4xi1>
  }
}

