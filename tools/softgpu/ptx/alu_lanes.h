// SPDX-License-Identifier: Apache-2.0
// Handlers made from a stateless scalar functor: one per functor and operand types, each a tight
// loop over the lanes. Any thread that steps a grid.
#pragma once

#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

// kPure as in map_lanes.
template <bool kPure, class D, class A, class F>
void unary(Exec& x, const Op& op, Mask mask) {
  map_lanes<kPure, D, A>(mask, F{}, x.dst(op.d), x.src(op.a));
}
template <bool kPure, class D, class A, class B, class F>
void binary(Exec& x, const Op& op, Mask mask) {
  map_lanes<kPure, D, A, B>(mask, F{}, x.dst(op.d), x.src(op.a), x.src(op.b));
}
template <bool kPure, class D, class A, class B, class C, class F>
void ternary(Exec& x, const Op& op, Mask mask) {
  map_lanes<kPure, D, A, B, C>(mask, F{}, x.dst(op.d), x.src(op.a), x.src(op.b), x.src(op.c));
}
template <bool kPure, class D, class A, class B, class C, class E, class F>
void quaternary(Exec& x, const Op& op, Mask mask) {
  map_lanes<kPure, D, A, B, C, E>(mask, F{}, x.dst(op.d), x.src(op.a), x.src(op.b), x.src(op.c),
                                  x.src(op.e));
}

// Wraps a function template instance as a functor, so that it inlines: Fn<int_add<T>>.
template <auto kFunction>
struct Fn {
  template <class... A>
  auto operator()(A... a) const {
    return kFunction(a...);
  }
};

}  // namespace softgpu::ptx
