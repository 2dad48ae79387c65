// _fft_r2c(f32[4,8] [1] 0 true -> complex<f32>[4,5])
module @tt {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x5xcomplex<f32>>) {
    %0 = "stablehlo.fft"(%arg0) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>} : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
    func.return %0 : tensor<4x5xcomplex<f32>>
  }
}

