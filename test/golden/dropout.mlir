// native_dropout(f32[4,8] 0.5 true)
module @tt {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<2xui64>) -> (tensor<4x8xf32>, tensor<4x8xi1>) {
    %0 = "stablehlo.constant"() {value = dense<5.0e-01> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.subtract"(%1, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %3:2 = "stablehlo.rng_bit_generator"(%arg1) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)
    %4 = "stablehlo.constant"() {value = dense<8> : tensor<ui32>} : () -> tensor<ui32>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<4x8xui32>
    %6 = "stablehlo.shift_right_logical"(%3#1, %5) : (tensor<4x8xui32>, tensor<4x8xui32>) -> tensor<4x8xui32>
    %7 = "stablehlo.convert"(%6) : (tensor<4x8xui32>) -> tensor<4x8xi32>
    %8 = "stablehlo.convert"(%7) : (tensor<4x8xi32>) -> tensor<4x8xf32>
    %9 = "stablehlo.constant"() {value = dense<5.96046448e-08> : tensor<f32>} : () -> tensor<f32>
    %10 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %11 = "stablehlo.multiply"(%8, %10) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %12 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %13 = "stablehlo.compare"(%11, %12) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %14 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %15 = "stablehlo.divide"(%1, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %16 = "stablehlo.compare"(%2, %14) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %17 = "stablehlo.select"(%16, %14, %15) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %18 = "stablehlo.convert"(%13) : (tensor<4x8xi1>) -> tensor<4x8xf32>
    %19 = "stablehlo.multiply"(%arg0, %18) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %20 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x8xf32>
    %21 = "stablehlo.multiply"(%19, %20) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %21, %13 : tensor<4x8xf32>, tensor<4x8xi1>
  }
}

