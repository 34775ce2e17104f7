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
#include "lib/msg/waiting.hpp"

namespace rio::ofi {

/// Our object, from a pointer that libfabric's user has. Each type names its struct as Fid.
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

/// An object that other objects use, and that must outlive them: while one does, it cannot be
/// closed. Any thread.
class Used {
 public:
  [[nodiscard]] bool in_use() const { return users_ != 0; }

 private:
  friend class Use;

  std::atomic<uint32_t> users_ = 0;
};

/// Keeps an object in use for the lifetime of this one.
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

/// Runs a call that creates or destroys an object: no exception leaves it, and no thread is
/// cancelled inside of it.
template <class Function>
[[nodiscard]] int no_throw(Function&& function) noexcept {
  static_assert(FI_ENOMEM == ENOMEM);
  static constexpr base::Boundary kProvider = {
      "rio: out of memory", "rio: unexpected exception in the provider; please report it",
      -FI_EOTHER};
  return base::guard(kProvider, function);
}

// The entries of libfabric's tables of calls are objects that convert to the entry's signature.

template <class Result, class... Arguments>
using Call = Result (*)(Arguments...);

/// A call that returns kRc.
template <int kRc>
struct Returns {
  template <class Result, class... Arguments>
  constexpr operator Call<Result, Arguments...>() const {
    return [](Arguments...) -> Result { return kRc; };
  }
};
/// A call that an object does not support.
inline constexpr Returns<-FI_ENOSYS> kNoCall;

/// How a call reaches its object: kGuarded under the Guard of the object's domain, kNoThrow also
/// without an exception that leaves it.
enum class How : uint8_t { kPlain, kGuarded, kNoThrow };

/// A call of a member function. One that returns nothing succeeds.
template <class Object, auto kMember, How kHow>
struct MemberCall {
  template <class Result, class Handle, class... Arguments>
  constexpr operator Call<Result, Handle*, Arguments...>() const {
    return [](Handle* handle, Arguments... arguments) -> Result {
      Object& object = of<Object>(handle);
      if constexpr (kHow == How::kPlain) {
        return call<Result>(object, arguments...);
      } else {
        const auto guarded = [&] {
          const msg::Guard guard(object.domain().port());
          return call<Result>(object, arguments...);
        };
        if constexpr (kHow == How::kGuarded) {
          return guarded();
        } else {
          return no_throw(guarded);
        }
      }
    };
  }

 private:
  template <class Result, class... Arguments>
  static Result call(Object& object, Arguments... arguments) {
    if constexpr (std::is_void_v<std::invoke_result_t<decltype(kMember), Object&, Arguments...>>) {
      (object.*kMember)(arguments...);
      return 0;
    } else {
      return (object.*kMember)(arguments...);
    }
  }
};
template <class Object, auto kMember>
inline constexpr MemberCall<Object, kMember, How::kPlain> kPlain;
template <class Object, auto kMember>
inline constexpr MemberCall<Object, kMember, How::kGuarded> kGuarded;
template <class Object, auto kMember>
inline constexpr MemberCall<Object, kMember, How::kNoThrow> kNoThrow;

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

/// The table of calls that every object has.
template <class Bind = decltype(kNoCall), class Control = decltype(kNoCall)>
[[nodiscard]] constexpr fi_ops object_calls(int (*close)(fid*), Bind bind = kNoCall,
                                            Control control = kNoCall) {
  return {sizeof(fi_ops), close, bind, control, kNoCall, nullptr, nullptr};
}
/// The calls on an object that can only be closed.
template <class Object>
inline fi_ops closing_ops = object_calls(close_object<Object>);

/// The text of an error of a queue. @param out null, or room for `bytes` of it.
template <class Queue>
const char* error_text(Queue*, int error, const void*, char* out, size_t bytes) {
  const char* const text = fi_strerror(error);
  if (out != nullptr && bytes != 0) {
    out[0] = '\0';
    std::strncat(out, text, bytes - 1);
  }
  return text;
}

/// fi_fabric(): what every object opened from it needs.
struct FiFabric : fid_fabric, Used {
  using Fid = fid_fabric;
};

}  // namespace rio::ofi
