// Python's Graph and Program classes.
#pragma once
#include <pybind11/pybind11.h>

namespace tt {
void bind_graph(pybind11::module_& m);
void bind_aot(pybind11::module_& m);  // aot.cpp
}
