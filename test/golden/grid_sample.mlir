// grid_sampler_2d(f32[1,2,4,4] f32[1,3,3,2] 0 0 false)
module @tt {
  func.func public @main(%arg0: tensor<1x2x4x4xf32>, %arg1: tensor<1x3x3x2xf32>) -> (tensor<1x2x3x3xf32>) {
    %0 = "stablehlo.reshape"(%arg1) : (tensor<1x3x3x2xf32>) -> tensor<1x9x2xf32>
    %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 0, 1>, limit_indices = array<i64: 1, 9, 2>, strides = array<i64: 1, 1, 1>} : (tensor<1x9x2xf32>) -> tensor<1x9x1xf32>
    %2 = "stablehlo.reshape"(%1) : (tensor<1x9x1xf32>) -> tensor<1x9xf32>
    %3 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %5 = "stablehlo.add"(%2, %4) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %6 = "stablehlo.constant"() {value = dense<2.0e+00> : tensor<f32>} : () -> tensor<f32>
    %7 = "stablehlo.constant"() {value = dense<4.0e+00> : tensor<f32>} : () -> tensor<f32>
    %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %9 = "stablehlo.multiply"(%5, %8) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %10 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %11 = "stablehlo.subtract"(%9, %10) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %12 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %13 = "stablehlo.divide"(%11, %12) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %14 = "stablehlo.floor"(%13) : (tensor<1x9xf32>) -> tensor<1x9xf32>
    %15 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %16 = "stablehlo.add"(%14, %15) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %17 = "stablehlo.subtract"(%16, %13) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %18 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %19 = "stablehlo.constant"() {value = dense<3.0e+00> : tensor<f32>} : () -> tensor<f32>
    %20 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %21 = "stablehlo.compare"(%14, %20) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %22 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %23 = "stablehlo.compare"(%14, %22) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %24 = "stablehlo.and"(%23, %21) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %25 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %26 = "stablehlo.select"(%24, %14, %25) : (tensor<1x9xi1>, tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %27 = "stablehlo.convert"(%26) : (tensor<1x9xf32>) -> tensor<1x9xi32>
    %28 = "stablehlo.subtract"(%13, %14) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %29 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %30 = "stablehlo.compare"(%16, %29) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %31 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %32 = "stablehlo.compare"(%16, %31) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %33 = "stablehlo.and"(%32, %30) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %34 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %35 = "stablehlo.select"(%33, %16, %34) : (tensor<1x9xi1>, tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %36 = "stablehlo.convert"(%35) : (tensor<1x9xf32>) -> tensor<1x9xi32>
    %37 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 1, 9, 1>, strides = array<i64: 1, 1, 1>} : (tensor<1x9x2xf32>) -> tensor<1x9x1xf32>
    %38 = "stablehlo.reshape"(%37) : (tensor<1x9x1xf32>) -> tensor<1x9xf32>
    %39 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %40 = "stablehlo.add"(%38, %39) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %41 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %42 = "stablehlo.multiply"(%40, %41) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %43 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %44 = "stablehlo.subtract"(%42, %43) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %45 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %46 = "stablehlo.divide"(%44, %45) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %47 = "stablehlo.floor"(%46) : (tensor<1x9xf32>) -> tensor<1x9xf32>
    %48 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %49 = "stablehlo.add"(%47, %48) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %50 = "stablehlo.subtract"(%49, %46) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %51 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %52 = "stablehlo.compare"(%47, %51) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %53 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %54 = "stablehlo.compare"(%47, %53) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %55 = "stablehlo.and"(%54, %52) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %56 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %57 = "stablehlo.select"(%55, %47, %56) : (tensor<1x9xi1>, tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %58 = "stablehlo.convert"(%57) : (tensor<1x9xf32>) -> tensor<1x9xi32>
    %59 = "stablehlo.subtract"(%46, %47) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %60 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %61 = "stablehlo.compare"(%49, %60) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %62 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %63 = "stablehlo.compare"(%49, %62) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xi1>
    %64 = "stablehlo.and"(%63, %61) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %65 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x9xf32>
    %66 = "stablehlo.select"(%64, %49, %65) : (tensor<1x9xi1>, tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %67 = "stablehlo.convert"(%66) : (tensor<1x9xf32>) -> tensor<1x9xi32>
    %68 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %69 = "stablehlo.broadcast_in_dim"(%68) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x9xi32>
    %70 = "stablehlo.multiply"(%27, %69) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %71 = "stablehlo.add"(%70, %58) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %72 = "stablehlo.and"(%24, %55) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %73 = "stablehlo.multiply"(%17, %50) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %74 = "stablehlo.reshape"(%71) : (tensor<1x9xi32>) -> tensor<1x1x9xi32>
    %75 = "stablehlo.reshape"(%72) : (tensor<1x9xi1>) -> tensor<1x1x9xi1>
    %76 = "stablehlo.reshape"(%73) : (tensor<1x9xf32>) -> tensor<1x1x9xf32>
    %77 = "stablehlo.broadcast_in_dim"(%68) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x9xi32>
    %78 = "stablehlo.multiply"(%27, %77) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %79 = "stablehlo.add"(%78, %67) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %80 = "stablehlo.and"(%24, %64) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %81 = "stablehlo.multiply"(%17, %59) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %82 = "stablehlo.reshape"(%79) : (tensor<1x9xi32>) -> tensor<1x1x9xi32>
    %83 = "stablehlo.reshape"(%80) : (tensor<1x9xi1>) -> tensor<1x1x9xi1>
    %84 = "stablehlo.reshape"(%81) : (tensor<1x9xf32>) -> tensor<1x1x9xf32>
    %85 = "stablehlo.broadcast_in_dim"(%68) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x9xi32>
    %86 = "stablehlo.multiply"(%36, %85) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %87 = "stablehlo.add"(%86, %58) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %88 = "stablehlo.and"(%33, %55) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %89 = "stablehlo.multiply"(%28, %50) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %90 = "stablehlo.reshape"(%87) : (tensor<1x9xi32>) -> tensor<1x1x9xi32>
    %91 = "stablehlo.reshape"(%88) : (tensor<1x9xi1>) -> tensor<1x1x9xi1>
    %92 = "stablehlo.reshape"(%89) : (tensor<1x9xf32>) -> tensor<1x1x9xf32>
    %93 = "stablehlo.broadcast_in_dim"(%68) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x9xi32>
    %94 = "stablehlo.multiply"(%36, %93) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %95 = "stablehlo.add"(%94, %67) : (tensor<1x9xi32>, tensor<1x9xi32>) -> tensor<1x9xi32>
    %96 = "stablehlo.and"(%33, %64) : (tensor<1x9xi1>, tensor<1x9xi1>) -> tensor<1x9xi1>
    %97 = "stablehlo.multiply"(%28, %59) : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<1x9xf32>
    %98 = "stablehlo.reshape"(%95) : (tensor<1x9xi32>) -> tensor<1x1x9xi32>
    %99 = "stablehlo.reshape"(%96) : (tensor<1x9xi1>) -> tensor<1x1x9xi1>
    %100 = "stablehlo.reshape"(%97) : (tensor<1x9xf32>) -> tensor<1x1x9xf32>
    %101 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<1x4x9xi32>
    %102 = "stablehlo.constant"() {value = dense<16> : tensor<i32>} : () -> tensor<i32>
    %103 = "stablehlo.broadcast_in_dim"(%102) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1x4x9xi32>
    %104 = "stablehlo.multiply"(%101, %103) : (tensor<1x4x9xi32>, tensor<1x4x9xi32>) -> tensor<1x4x9xi32>
    %105 = "stablehlo.concatenate"(%74, %82, %90, %98) {dimension = 1 : i64} : (tensor<1x1x9xi32>, tensor<1x1x9xi32>, tensor<1x1x9xi32>, tensor<1x1x9xi32>) -> tensor<1x4x9xi32>
    %106 = "stablehlo.add"(%105, %104) : (tensor<1x4x9xi32>, tensor<1x4x9xi32>) -> tensor<1x4x9xi32>
    %107 = "stablehlo.concatenate"(%75, %83, %91, %99) {dimension = 1 : i64} : (tensor<1x1x9xi1>, tensor<1x1x9xi1>, tensor<1x1x9xi1>, tensor<1x1x9xi1>) -> tensor<1x4x9xi1>
    %108 = "stablehlo.concatenate"(%76, %84, %92, %100) {dimension = 1 : i64} : (tensor<1x1x9xf32>, tensor<1x1x9xf32>, tensor<1x1x9xf32>, tensor<1x1x9xf32>) -> tensor<1x4x9xf32>
    %109 = "stablehlo.reshape"(%arg0) : (tensor<1x2x4x4xf32>) -> tensor<1x2x16xf32>
    %110 = "stablehlo.transpose"(%109) {permutation = array<i64: 0, 2, 1>} : (tensor<1x2x16xf32>) -> tensor<1x16x2xf32>
    %111 = "stablehlo.reshape"(%110) : (tensor<1x16x2xf32>) -> tensor<16x2xf32>
    %112 = "stablehlo.gather"(%111, %106) {dimension_numbers = #stablehlo.gather<offset_dims = [3], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 3>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false} : (tensor<16x2xf32>, tensor<1x4x9xi32>) -> tensor<1x4x9x2xf32>
    %113 = "stablehlo.broadcast_in_dim"(%107) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x4x9xi1>) -> tensor<1x4x9x2xi1>
    %114 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x4x9x2xf32>
    %115 = "stablehlo.select"(%113, %112, %114) : (tensor<1x4x9x2xi1>, tensor<1x4x9x2xf32>, tensor<1x4x9x2xf32>) -> tensor<1x4x9x2xf32>
    %116 = "stablehlo.broadcast_in_dim"(%108) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x4x9xf32>) -> tensor<1x4x9x2xf32>
    %117 = "stablehlo.multiply"(%115, %116) : (tensor<1x4x9x2xf32>, tensor<1x4x9x2xf32>) -> tensor<1x4x9x2xf32>
    %118 = "stablehlo.reduce"(%117, %18) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
      %119 = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%119) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<1x4x9x2xf32>, tensor<f32>) -> tensor<1x9x2xf32>
    %120 = "stablehlo.transpose"(%118) {permutation = array<i64: 0, 2, 1>} : (tensor<1x9x2xf32>) -> tensor<1x2x9xf32>
    %121 = "stablehlo.reshape"(%120) : (tensor<1x2x9xf32>) -> tensor<1x2x3x3xf32>
    func.return %121 : tensor<1x2x3x3xf32>
  }
}

