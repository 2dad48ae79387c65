// _adaptive_avg_pool2d(f32[1,2,7,7] [3,3])
module @tt {
  func.func public @main(%arg0: tensor<1x2x7x7xf32>) -> (tensor<1x2x3x3xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<3x3xi64>
    %2 = "stablehlo.constant"() {value = dense<7> : tensor<i64>} : () -> tensor<i64>
    %3 = "stablehlo.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %4 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %5 = "stablehlo.multiply"(%1, %4) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %6 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %7 = "stablehlo.divide"(%5, %6) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %8 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %10 = "stablehlo.add"(%1, %9) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %11 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %12 = "stablehlo.multiply"(%10, %11) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %13 = "stablehlo.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %15 = "stablehlo.add"(%12, %14) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %16 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %17 = "stablehlo.divide"(%15, %16) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %18 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<3x3xi64>
    %19 = "stablehlo.add"(%7, %18) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %20 = "stablehlo.compare"(%19, %17) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %21 = "stablehlo.constant"() {value = dense<6> : tensor<i64>} : () -> tensor<i64>
    %22 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %23 = "stablehlo.minimum"(%19, %22) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %24 = "stablehlo.convert"(%23) : (tensor<3x3xi64>) -> tensor<3x3xi32>
    %25 = "stablehlo.gather"(%arg0, %24) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 2], collapsed_slice_dims = [3], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [3], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 7, 1>, indices_are_sorted = false} : (tensor<1x2x7x7xf32>, tensor<3x3xi32>) -> tensor<1x2x7x3x3xf32>
    %26 = "stablehlo.broadcast_in_dim"(%20) {broadcast_dimensions = array<i64: 3, 4>} : (tensor<3x3xi1>) -> tensor<1x2x7x3x3xi1>
    %27 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x2x7x3x3xf32>
    %28 = "stablehlo.select"(%26, %25, %27) : (tensor<1x2x7x3x3xi1>, tensor<1x2x7x3x3xf32>, tensor<1x2x7x3x3xf32>) -> tensor<1x2x7x3x3xf32>
    %29 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<3x3xi64>
    %30 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %31 = "stablehlo.multiply"(%29, %30) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %32 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %33 = "stablehlo.divide"(%31, %32) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %34 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %35 = "stablehlo.add"(%29, %34) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %36 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %37 = "stablehlo.multiply"(%35, %36) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %38 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %39 = "stablehlo.add"(%37, %38) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %40 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %41 = "stablehlo.divide"(%39, %40) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %42 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<3x3xi64>
    %43 = "stablehlo.add"(%33, %42) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %44 = "stablehlo.compare"(%43, %41) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %45 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %46 = "stablehlo.minimum"(%43, %45) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %47 = "stablehlo.convert"(%46) : (tensor<3x3xi64>) -> tensor<3x3xi32>
    %48 = "stablehlo.gather"(%28, %47) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 4, 5], collapsed_slice_dims = [2], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [2], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 1, 3, 3>, indices_are_sorted = false} : (tensor<1x2x7x3x3xf32>, tensor<3x3xi32>) -> tensor<1x2x3x3x3x3xf32>
    %49 = "stablehlo.broadcast_in_dim"(%44) {broadcast_dimensions = array<i64: 2, 3>} : (tensor<3x3xi1>) -> tensor<1x2x3x3x3x3xi1>
    %50 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x2x3x3x3x3xf32>
    %51 = "stablehlo.select"(%49, %48, %50) : (tensor<1x2x3x3x3x3xi1>, tensor<1x2x3x3x3x3xf32>, tensor<1x2x3x3x3x3xf32>) -> tensor<1x2x3x3x3x3xf32>
    %52 = "stablehlo.reduce"(%51, %0) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %53 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%53) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3, 5>} : (tensor<1x2x3x3x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
    %54 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<3x3xi64>
    %55 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %56 = "stablehlo.multiply"(%54, %55) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %57 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %58 = "stablehlo.divide"(%56, %57) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %59 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %60 = "stablehlo.add"(%54, %59) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %61 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %62 = "stablehlo.multiply"(%60, %61) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %63 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %64 = "stablehlo.add"(%62, %63) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %65 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %66 = "stablehlo.divide"(%64, %65) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %67 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<3x3xi64>
    %68 = "stablehlo.add"(%58, %67) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %69 = "stablehlo.compare"(%68, %66) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %70 = "stablehlo.convert"(%69) : (tensor<3x3xi1>) -> tensor<3x3xf32>
    %71 = "stablehlo.reduce"(%70, %0) ({
    ^bb0(%a2: tensor<f32>, %a3: tensor<f32>):
      %72 = "stablehlo.add"(%a2, %a3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%72) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
    %73 = "stablehlo.broadcast_in_dim"(%71) {broadcast_dimensions = array<i64: 2>} : (tensor<3xf32>) -> tensor<1x2x3x3xf32>
    %74 = "stablehlo.divide"(%52, %73) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
    %75 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<3x3xi64>
    %76 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %77 = "stablehlo.multiply"(%75, %76) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %78 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %79 = "stablehlo.divide"(%77, %78) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %80 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %81 = "stablehlo.add"(%75, %80) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %82 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %83 = "stablehlo.multiply"(%81, %82) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %84 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %85 = "stablehlo.add"(%83, %84) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %86 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<3x3xi64>
    %87 = "stablehlo.divide"(%85, %86) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %88 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<3x3xi64>
    %89 = "stablehlo.add"(%79, %88) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %90 = "stablehlo.compare"(%89, %87) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %91 = "stablehlo.convert"(%90) : (tensor<3x3xi1>) -> tensor<3x3xf32>
    %92 = "stablehlo.reduce"(%91, %0) ({
    ^bb0(%a4: tensor<f32>, %a5: tensor<f32>):
      %93 = "stablehlo.add"(%a4, %a5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%93) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
    %94 = "stablehlo.broadcast_in_dim"(%92) {broadcast_dimensions = array<i64: 3>} : (tensor<3xf32>) -> tensor<1x2x3x3xf32>
    %95 = "stablehlo.divide"(%74, %94) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
    func.return %95 : tensor<1x2x3x3xf32>
  }
}

