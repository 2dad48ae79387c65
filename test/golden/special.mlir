// special_zeta(f32[4] f32[4])
module @tt {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = "stablehlo.floor"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.compare"(%0, %arg1) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %2 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %4 = "stablehlo.compare"(%arg1, %3) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %5 = "stablehlo.and"(%4, %1) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %6 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %8 = "stablehlo.compare"(%arg0, %7) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %9 = "stablehlo.and"(%5, %8) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %10 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %11 = "stablehlo.floor"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.compare"(%11, %arg0) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %13 = "stablehlo.floor"(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
    %14 = "stablehlo.compare"(%13, %arg1) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %15 = "stablehlo.not"(%12) : (tensor<4xi1>) -> tensor<4xi1>
    %16 = "stablehlo.or"(%15, %14) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %17 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %18 = "stablehlo.compare"(%arg1, %17) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %19 = "stablehlo.or"(%16, %18) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %20 = "stablehlo.constant"() {value = dense<1.0e+01> : tensor<f32>} : () -> tensor<f32>
    %21 = "stablehlo.broadcast_in_dim"(%20) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %22 = "stablehlo.select"(%19, %21, %arg1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %23:3 = "stablehlo.while"(%2, %22, %10) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>):
      %24 = "stablehlo.constant"() {value = dense<1.0e+01> : tensor<f32>} : () -> tensor<f32>
      %25 = "stablehlo.broadcast_in_dim"(%24) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %26 = "stablehlo.compare"(%a1, %25) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %27 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
      %28 = "stablehlo.reduce"(%26, %27) ({
      ^bb0(%a3: tensor<i1>, %a4: tensor<i1>):
        %29 = "stablehlo.or"(%a3, %a4) : (tensor<i1>, tensor<i1>) -> tensor<i1>
        "stablehlo.return"(%29) : (tensor<i1>) -> ()
      }) {dimensions = array<i64: 0>} : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
      %30 = "stablehlo.constant"() {value = dense<1.0e+05> : tensor<f32>} : () -> tensor<f32>
      %31 = "stablehlo.compare"(%a0, %30) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %32 = "stablehlo.and"(%31, %28) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%32) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a5: tensor<f32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>):
      %33 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
      %34 = "stablehlo.add"(%a5, %33) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %35 = "stablehlo.constant"() {value = dense<1.0e+01> : tensor<f32>} : () -> tensor<f32>
      %36 = "stablehlo.broadcast_in_dim"(%35) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %37 = "stablehlo.compare"(%a6, %36) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %38 = "stablehlo.negate"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
      %39 = "stablehlo.power"(%a6, %38) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %40 = "stablehlo.broadcast_in_dim"(%33) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %41 = "stablehlo.add"(%a6, %40) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %42 = "stablehlo.select"(%37, %41, %a6) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %43 = "stablehlo.add"(%a7, %39) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %44 = "stablehlo.select"(%37, %43, %a7) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%34, %42, %44) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> ()
    }) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %45 = "stablehlo.select"(%19, %arg1, %23#1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %46 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %47 = "stablehlo.select"(%19, %46, %23#2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %48 = "chlo.zeta"(%arg0, %45) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %49 = "stablehlo.add"(%48, %47) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %50 = "stablehlo.constant"() {value = dense<0x7F800000> : tensor<f32>} : () -> tensor<f32>
    %51 = "stablehlo.broadcast_in_dim"(%50) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %52 = "stablehlo.select"(%9, %51, %49) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %53 = "stablehlo.constant"() {value = dense<0x7FC00000> : tensor<f32>} : () -> tensor<f32>
    %54 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %55 = "stablehlo.compare"(%arg0, %54) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %56 = "stablehlo.broadcast_in_dim"(%53) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %57 = "stablehlo.select"(%55, %56, %52) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %57 : tensor<4xf32>
  }
}

