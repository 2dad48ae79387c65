// max_pool2d_with_indices(f32[1,2,6,6] [2,2] [2,2] [0,0] [1,1] false)
module @tt {
  func.func public @main(%arg0: tensor<1x2x6x6xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x3x3xi64>) {
    %0 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %1 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x2x6x6xi32>
    %2 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x2x6x6xi32>
    %3 = "stablehlo.multiply"(%1, %2) : (tensor<1x2x6x6xi32>, tensor<1x2x6x6xi32>) -> tensor<1x2x6x6xi32>
    %4 = "stablehlo.constant"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
    %5 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x2x6x6xi32>
    %6 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x2x6x6xi32>
    %7 = "stablehlo.multiply"(%5, %6) : (tensor<1x2x6x6xi32>, tensor<1x2x6x6xi32>) -> tensor<1x2x6x6xi32>
    %8 = "stablehlo.add"(%3, %7) : (tensor<1x2x6x6xi32>, tensor<1x2x6x6xi32>) -> tensor<1x2x6x6xi32>
    %9 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %10 = "stablehlo.constant"() {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %11:2 = "stablehlo.reduce_window"(%arg0, %8, %9, %10) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<i32>, %a2: tensor<f32>, %a3: tensor<i32>):
      %12 = "stablehlo.compare"(%a2, %a0) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %13 = "stablehlo.compare"(%a3, %a1) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = "stablehlo.compare"(%a2, %a0) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %15 = "stablehlo.and"(%14, %13) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %16 = "stablehlo.or"(%12, %15) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %17 = "stablehlo.compare"(%a0, %a0) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %18 = "stablehlo.compare"(%a2, %a2) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %19 = "stablehlo.not"(%17) : (tensor<i1>) -> tensor<i1>
      %20 = "stablehlo.and"(%16, %19) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %21 = "stablehlo.not"(%13) : (tensor<i1>) -> tensor<i1>
      %22 = "stablehlo.not"(%17) : (tensor<i1>) -> tensor<i1>
      %23 = "stablehlo.or"(%22, %21) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %24 = "stablehlo.and"(%18, %23) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %25 = "stablehlo.or"(%20, %24) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %26 = "stablehlo.select"(%25, %a2, %a0) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %27 = "stablehlo.select"(%25, %a3, %a1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%26, %27) : (tensor<f32>, tensor<i32>) -> ()
    }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>} : (tensor<1x2x6x6xf32>, tensor<1x2x6x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x3x3xi32>)
    %28 = "stablehlo.convert"(%11#1) : (tensor<1x2x3x3xi32>) -> tensor<1x2x3x3xi64>
    func.return %11#0, %28 : tensor<1x2x3x3xf32>, tensor<1x2x3x3xi64>
  }
}

// avg_pool2d(f32[1,2,6,6] [3,3] [2,2] [1,1] false true none)
module @tt {
  func.func public @main(%arg0: tensor<1x2x6x6xf32>) -> (tensor<1x2x3x3xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %2 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 0], [1, 0]]> : tensor<4x2xi64>} : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
    %3 = "stablehlo.constant"() {value = dense<9.0e+00> : tensor<f32>} : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x2x3x3xf32>
    %5 = "stablehlo.divide"(%1, %4) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
    func.return %5 : tensor<1x2x3x3xf32>
  }
}

