// mse_loss(f32[4,3] f32[4,3] 1)
module @tt {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<f32>) {
    %0 = "stablehlo.subtract"(%arg0, %arg1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %1 = "stablehlo.multiply"(%0, %0) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %2 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.reduce"(%1, %2) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %4 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.constant"() {value = dense<1.2e+01> : tensor<f32>} : () -> tensor<f32>
    %6 = "stablehlo.divide"(%3, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    func.return %6 : tensor<f32>
  }
}

// nll_loss_forward(f32[4,5] i64[4] none 1 -100)
module @tt {
  func.func public @main(%arg0: tensor<4x5xf32>, %arg1: tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xi64>) {
    %0 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %1 = "stablehlo.reshape"(%arg1) : (tensor<4xi64>) -> tensor<4x1xi64>
    %2 = "stablehlo.constant"() {value = dense<-100> : tensor<i64>} : () -> tensor<i64>
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4x1xi64>
    %4 = "stablehlo.compare"(%1, %3) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x1xi1>
    %5 = "stablehlo.constant"() {value = dense<5> : tensor<i64>} : () -> tensor<i64>
    %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4x1xi64>
    %7 = "stablehlo.compare"(%1, %6) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x1xi1>
    %8 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4x1xi64>
    %9 = "stablehlo.compare"(%1, %8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x1xi1>
    %10 = "stablehlo.or"(%9, %7) : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
    %11 = "stablehlo.and"(%4, %10) : (tensor<4x1xi1>, tensor<4x1xi1>) -> tensor<4x1xi1>
    %12 = "stablehlo.constant"() {value = dense<-9223372036854775808> : tensor<i64>} : () -> tensor<i64>
    %13 = "stablehlo.broadcast_in_dim"(%12) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4x1xi64>
    %14 = "stablehlo.select"(%11, %1, %13) : (tensor<4x1xi1>, tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x1xi64>
    %15 = "stablehlo.reduce"(%14, %12) ({
    ^bb0(%a0: tensor<i64>, %a1: tensor<i64>):
      %16 = "stablehlo.maximum"(%a0, %a1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%16) : (tensor<i64>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x1xi64>, tensor<i64>) -> tensor<i64>
    %17 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %18 = "stablehlo.reduce"(%11, %17) ({
    ^bb0(%a2: tensor<i1>, %a3: tensor<i1>):
      %19 = "stablehlo.or"(%a2, %a3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%19) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x1xi1>, tensor<i1>) -> tensor<i1>
    %20 = "stablehlo.constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
    %21 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4x1xi64>
    %22 = "stablehlo.select"(%4, %1, %21) : (tensor<4x1xi1>, tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x1xi64>
    %23 = "stablehlo.clamp"(%0, %22, %20) : (tensor<i64>, tensor<4x1xi64>, tensor<i64>) -> tensor<4x1xi64>
    %24 = "stablehlo.convert"(%4) : (tensor<4x1xi1>) -> tensor<4x1xf32>
    %25 = "stablehlo.gather"(%arg0, %23) {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>, indices_are_sorted = false} : (tensor<4x5xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
    %26 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %27 = "stablehlo.multiply"(%25, %24) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %28 = "stablehlo.negate"(%27) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %29 = "stablehlo.broadcast_in_dim"(%26) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x1xf32>
    %30 = "stablehlo.select"(%4, %28, %29) : (tensor<4x1xi1>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %31 = "stablehlo.reduce"(%24, %26) ({
    ^bb0(%a4: tensor<f32>, %a5: tensor<f32>):
      %32 = "stablehlo.add"(%a4, %a5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%32) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %33 = "stablehlo.reduce"(%30, %26) ({
    ^bb0(%a6: tensor<f32>, %a7: tensor<f32>):
      %34 = "stablehlo.add"(%a6, %a7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%34) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %35 = "stablehlo.divide"(%33, %31) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %36 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %37 = "stablehlo.select"(%18, %36, %0) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %38 = "stablehlo.select"(%18, %15, %0) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %39 = "stablehlo.reshape"(%37) : (tensor<i64>) -> tensor<1xi64>
    %40 = "stablehlo.reshape"(%38) : (tensor<i64>) -> tensor<1xi64>
    %41 = "stablehlo.concatenate"(%39, %40) {dimension = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    func.return %35, %31, %41 : tensor<f32>, tensor<f32>, tensor<2xi64>
  }
}

