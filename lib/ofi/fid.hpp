/// @file
/// libfabric's objects and ours: each of ours is derived from the struct that libfabric knows.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <new>
#include <type_traits>

#include "pmd/bus/log.hpp"

namespace rio::ofi {

/// Ours, from a pointer that libfabric's user has. Each type names its struct as Fid.
template <class Object>
[[nodiscard]] Object& of(typename Object::Fid* fid) {
  return static_cast<Object&>(*fid);
}
/// The same, from its first member.
template <class Object>
[[nodiscard]] Object& of(fid* fid) {
  static_assert(std::is_standard_layout_v<typename Object::Fid>);
  return static_cast<Object&>(*reinterpret_cast<typename Object::Fid*>(fid));
}

/// No exception crosses the library's boundary.
template <class Function>
[[nodiscard]] int no_throw(Function&& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    pmd::log_error("rio: out of memory");
    return -FI_ENOMEM;
  } catch (...) {
    pmd::log_error("rio: unexpected exception in the provider; please report it");
    return -FI_EOTHER;
  }
}

// For what an object does not do.
inline int no_bind(fid*, fid*, uint64_t) {
  return -FI_ENOSYS;
}
inline int no_control(fid*, int, void*) {
  return -FI_ENOSYS;
}
inline int no_ops_open(fid*, const char*, uint64_t, void**, void*) {
  return -FI_ENOSYS;
}

/// Deletes the object.
template <class Object>
int close_object(fid* fid) {
  delete &of<Object>(fid);
  return 0;
}

}  // namespace rio::ofi
