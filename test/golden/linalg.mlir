// cholesky(f32[4,4] false -> f32[4,4])
module @tt {
  func.func public @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2xi64>) {
    %0 = "stablehlo.reshape"(%arg0) : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
    %1 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %2 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x4x4xi64>
    %3 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x4x4xi64>
    %4 = "stablehlo.add"(%2, %3) : (tensor<1x4x4xi64>, tensor<1x4x4xi64>) -> tensor<1x4x4xi64>
    %5 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<1x4x4xi64>
    %6 = "stablehlo.compare"(%5, %4) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<1x4x4xi64>, tensor<1x4x4xi64>) -> tensor<1x4x4xi1>
    %7 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x4x4xf32>
    %9 = "stablehlo.select"(%6, %0, %8) : (tensor<1x4x4xi1>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %10 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x4x4xi64>
    %11 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<1x4x4xi64>
    %12 = "stablehlo.compare"(%11, %10) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<1x4x4xi64>, tensor<1x4x4xi64>) -> tensor<1x4x4xi1>
    %13 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x4x4xf32>
    %14 = "stablehlo.select"(%12, %0, %13) : (tensor<1x4x4xi1>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %15 = "stablehlo.transpose"(%9) {permutation = array<i64: 0, 2, 1>} : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %16 = "stablehlo.add"(%9, %15) : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %17 = "stablehlo.add"(%16, %14) : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %18 = "stablehlo.cholesky"(%17) {lower = true} : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %19 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %20 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x4x4xi64>
    %21 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x4x4xi64>
    %22 = "stablehlo.add"(%20, %21) : (tensor<1x4x4xi64>, tensor<1x4x4xi64>) -> tensor<1x4x4xi64>
    %23 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<1x4x4xi64>
    %24 = "stablehlo.compare"(%23, %22) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<1x4x4xi64>, tensor<1x4x4xi64>) -> tensor<1x4x4xi1>
    %25 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x4x4xf32>
    %26 = "stablehlo.select"(%24, %18, %25) : (tensor<1x4x4xi1>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    %27 = "stablehlo.compare"(%26, %26) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xi1>
    %28 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %29 = "stablehlo.reduce"(%27, %28) ({
    ^bb0(%a0: tensor<i1>, %a1: tensor<i1>):
      %30 = "stablehlo.or"(%a0, %a1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%30) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 1, 2>} : (tensor<1x4x4xi1>, tensor<i1>) -> tensor<1xi1>
    %31 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %32 = "stablehlo.broadcast_in_dim"(%31) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1xi32>
    %33 = "stablehlo.reshape"(%29) : (tensor<1xi1>) -> tensor<i1>
    %34 = "stablehlo.if"(%33) ({
      %35 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
      %36:3 = "stablehlo.while"(%35, %17, %32) ({
      ^bb0(%a2: tensor<i64>, %a3: tensor<1x4x4xf32>, %a4: tensor<1xi32>):
        %37 = "stablehlo.constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
        %38 = "stablehlo.compare"(%a2, %37) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
        "stablehlo.return"(%38) : (tensor<i1>) -> ()
      }, {
      ^bb0(%a5: tensor<i64>, %a6: tensor<1x4x4xf32>, %a7: tensor<1xi32>):
        %39 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
        %40 = "stablehlo.dynamic_slice"(%a6, %39, %39, %a5) {slice_sizes = array<i64: 1, 4, 1>} : (tensor<1x4x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x4x1xf32>
        %41 = "stablehlo.dynamic_slice"(%40, %39, %a5, %39) {slice_sizes = array<i64: 1, 1, 1>} : (tensor<1x4x1xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x1x1xf32>
        %42 = "stablehlo.reshape"(%41) : (tensor<1x1x1xf32>) -> tensor<1xf32>
        %43 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
        %44 = "stablehlo.broadcast_in_dim"(%43) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1xf32>
        %45 = "stablehlo.compare"(%42, %44) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
        %46 = "stablehlo.not"(%45) : (tensor<1xi1>) -> tensor<1xi1>
        %47 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
        %48 = "stablehlo.broadcast_in_dim"(%47) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1xi32>
        %49 = "stablehlo.compare"(%a7, %48) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
        %50 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
        %51 = "stablehlo.add"(%a5, %50) : (tensor<i64>, tensor<i64>) -> tensor<i64>
        %52 = "stablehlo.convert"(%51) : (tensor<i64>) -> tensor<i32>
        %53 = "stablehlo.and"(%46, %49) : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
        %54 = "stablehlo.broadcast_in_dim"(%52) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1xi32>
        %55 = "stablehlo.select"(%53, %54, %a7) : (tensor<1xi1>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
        %56 = "stablehlo.broadcast_in_dim"(%41) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x1xf32>) -> tensor<1x4x1xf32>
        %57 = "stablehlo.divide"(%40, %56) : (tensor<1x4x1xf32>, tensor<1x4x1xf32>) -> tensor<1x4x1xf32>
        %58 = "stablehlo.broadcast_in_dim"(%57) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x4x1xf32>) -> tensor<1x4x4xf32>
        %59 = "stablehlo.transpose"(%40) {permutation = array<i64: 0, 2, 1>} : (tensor<1x4x1xf32>) -> tensor<1x1x4xf32>
        %60 = "stablehlo.broadcast_in_dim"(%59) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x4xf32>) -> tensor<1x4x4xf32>
        %61 = "stablehlo.multiply"(%58, %60) : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
        %62 = "stablehlo.subtract"(%a6, %61) : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
        %63 = "stablehlo.add"(%a5, %50) : (tensor<i64>, tensor<i64>) -> tensor<i64>
        "stablehlo.return"(%63, %62, %55) : (tensor<i64>, tensor<1x4x4xf32>, tensor<1xi32>) -> ()
      }) : (tensor<i64>, tensor<1x4x4xf32>, tensor<1xi32>) -> (tensor<i64>, tensor<1x4x4xf32>, tensor<1xi32>)
      %64 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %65 = "stablehlo.broadcast_in_dim"(%64) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1xi32>
      %66 = "stablehlo.maximum"(%36#2, %65) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
      %67 = "stablehlo.select"(%29, %66, %32) : (tensor<1xi1>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
      "stablehlo.return"(%67) : (tensor<1xi32>) -> ()
    }, {
      "stablehlo.return"(%32) : (tensor<1xi32>) -> ()
    }) : (tensor<i1>) -> tensor<1xi32>
    %68 = "stablehlo.broadcast_in_dim"(%31) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<1xi32>
    %69 = "stablehlo.compare"(%34, %68) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %70 = "stablehlo.reshape"(%34) : (tensor<1xi32>) -> tensor<i32>
    %71 = "stablehlo.convert"(%70) : (tensor<i32>) -> tensor<i64>
    %72 = "stablehlo.reshape"(%69) : (tensor<1xi1>) -> tensor<i1>
    %73 = "stablehlo.reshape"(%26) : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
    %74 = "stablehlo.select"(%72, %1, %19) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %75 = "stablehlo.select"(%72, %71, %19) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %76 = "stablehlo.reshape"(%74) : (tensor<i64>) -> tensor<1xi64>
    %77 = "stablehlo.reshape"(%75) : (tensor<i64>) -> tensor<1xi64>
    %78 = "stablehlo.concatenate"(%76, %77) {dimension = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    func.return %73, %78 : tensor<4x4xf32>, tensor<2xi64>
  }
}

