// cat({f32[2,3] f32[4,3]} 0)
module @tt {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<6x3xf32>) {
    %0 = "stablehlo.concatenate"(%arg0, %arg1) {dimension = 0 : i64} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
    func.return %0 : tensor<6x3xf32>
  }
}

// select_scatter(f32[4,3] f32[3] 0 -1)
module @tt {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>) -> (tensor<4x3xf32>) {
    %0 = "stablehlo.reshape"(%arg1) : (tensor<3xf32>) -> tensor<1x3xf32>
    %1 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %3 = "stablehlo.dynamic_update_slice"(%arg0, %0, %1, %2) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    func.return %3 : tensor<4x3xf32>
  }
}

