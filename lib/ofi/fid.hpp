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

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/guard.hpp"
#include "base/no_cancel.hpp"

namespace rio::ofi {

/// Ours, from a pointer that libfabric's user has. Each type names its struct as Fid.
template <class Object>
[[nodiscard]] Object& of(typename Object::Fid* fid) {
  return static_cast<Object&>(*fid);
}
/// Get the object from its fid, which is its first member.
template <class Object>
[[nodiscard]] Object& of(fid* fid) {
  static_assert(std::is_standard_layout_v<typename Object::Fid>);
  return static_cast<Object&>(*reinterpret_cast<typename Object::Fid*>(fid));
}

/// An object that others use, and that outlives them: until then it cannot be closed. Any thread.
class Used {
 public:
  [[nodiscard]] bool in_use() const { return users_ != 0; }

 private:
  friend class Use;

  std::atomic<uint32_t> users_ = 0;
};

/// As long as it lives, what it was made with is in use.
class Use {
 public:
  Use() = default;
  explicit Use(Used& what) : what_(&what) { ++what.users_; }
  Use(Use&& other) noexcept : what_(std::exchange(other.what_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    std::swap(what_, other.what_);
    return *this;
  }
  ~Use() {
    if (what_ != nullptr) {
      --what_->users_;
    }
  }

 private:
  Used* what_ = nullptr;
};

/// Run a call that makes or ends an object: no exception leaves it, and no thread is cancelled in
/// it.
template <class Function>
[[nodiscard]] int no_throw(Function&& function) noexcept {
  static_assert(FI_ENOMEM == ENOMEM);
  static constexpr base::Boundary kProvider = {
      "rio: out of memory", "rio: unexpected exception in the provider; please report it",
      -FI_EOTHER};
  return base::guard(kProvider, function);
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

/// Deletes the object. @return 0, -FI_EBUSY: it is in use.
template <class Object>
int close_object(fid* fid) {
  Object& object = of<Object>(fid);
  const base::NoCancel no_cancel;
  if (object.in_use()) {
    return -FI_EBUSY;
  }
  delete &object;
  return 0;
}

}  // namespace rio::ofi
