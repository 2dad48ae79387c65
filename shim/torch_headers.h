// What every file of the shim includes of torch; precompiled, so keep our own headers out of it.
#pragma once
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <vector>
