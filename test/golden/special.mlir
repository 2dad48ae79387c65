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
    %17 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %18 = "stablehlo.maximum"(%arg1, %17) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %19 = "stablehlo.select"(%16, %18, %arg1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %20:3 = "stablehlo.while"(%2, %19, %10) ({
    ^bb0(%a0: tensor<f32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>):
      %21 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
      %22 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %23 = "stablehlo.compare"(%a1, %22) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %24 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
      %25 = "stablehlo.reduce"(%23, %24) ({
      ^bb0(%a3: tensor<i1>, %a4: tensor<i1>):
        %26 = "stablehlo.or"(%a3, %a4) : (tensor<i1>, tensor<i1>) -> tensor<i1>
        "stablehlo.return"(%26) : (tensor<i1>) -> ()
      }) {dimensions = array<i64: 0>} : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
      %27 = "stablehlo.constant"() {value = dense<1.0e+05> : tensor<f32>} : () -> tensor<f32>
      %28 = "stablehlo.compare"(%a0, %27) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %29 = "stablehlo.and"(%28, %25) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%29) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a5: tensor<f32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>):
      %30 = "stablehlo.constant"() {value = dense<1.0e+00> : tensor<f32>} : () -> tensor<f32>
      %31 = "stablehlo.add"(%a5, %30) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %32 = "stablehlo.constant"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>
      %33 = "stablehlo.broadcast_in_dim"(%32) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %34 = "stablehlo.compare"(%a6, %33) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %35 = "stablehlo.negate"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
      %36 = "stablehlo.power"(%a6, %35) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %37 = "stablehlo.broadcast_in_dim"(%30) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %38 = "stablehlo.add"(%a6, %37) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %39 = "stablehlo.select"(%34, %38, %a6) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %40 = "stablehlo.add"(%a7, %36) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %41 = "stablehlo.select"(%34, %40, %a7) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%31, %39, %41) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> ()
    }) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
    %42 = "stablehlo.select"(%16, %arg1, %20#1) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %43 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %44 = "stablehlo.select"(%16, %43, %20#2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %45 = "chlo.zeta"(%arg0, %42) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %46 = "stablehlo.add"(%45, %44) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %47 = "stablehlo.constant"() {value = dense<0x7F800000> : tensor<f32>} : () -> tensor<f32>
    %48 = "stablehlo.broadcast_in_dim"(%47) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %49 = "stablehlo.select"(%9, %48, %46) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %49 : tensor<4xf32>
  }
}

