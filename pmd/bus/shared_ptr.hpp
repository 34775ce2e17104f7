/// @file
/// Objects in memory that all processes which use a card see at one address.
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "pmd/bus/bus.hpp"

namespace rio::pmd {

/// Destroys an object and gives its memory back to the bus that it is of.
class SharedDelete {
 public:
  SharedDelete() = default;
  explicit SharedDelete(Bus* bus) : bus_(bus) {}
  template <class T>
  void operator()(T* object) const {
    object->~T();
    bus_->shared_free(object);
  }

 private:
  Bus* bus_ = nullptr;
};

/// Owns an object in memory of Bus::shared_alloc(). It itself lies in the process that made the
/// object; the others have plain pointers, which are good as long as the owner keeps it. The bus
/// outlives it.
template <class T>
using SharedPtr = std::unique_ptr<T, SharedDelete>;

/// A constructor that takes this key can be called by make_shared_object() only.
class SharedKey {
  explicit SharedKey() = default;
  template <class T, class... Args>
  friend SharedPtr<T> make_shared_object(Bus& bus, Args&&... args);
};

/// Make an object in that memory. Parts that other processes use must not point to memory of this
/// process, nor to code. Control path. @param args of the constructor, behind a SharedKey if it
/// takes one. @return null: no memory.
template <class T, class... Args>
[[nodiscard]] SharedPtr<T> make_shared_object(Bus& bus, Args&&... args) {
  void* const memory = bus.shared_alloc(sizeof(T), alignof(T));
  if (memory == nullptr) {
    return {};
  }
  if constexpr (std::is_constructible_v<T, SharedKey, Args...>) {
    return SharedPtr<T>(::new (memory) T(SharedKey(), std::forward<Args>(args)...),
                        SharedDelete(&bus));
  } else {
    return SharedPtr<T>(::new (memory) T(std::forward<Args>(args)...), SharedDelete(&bus));
  }
}

}  // namespace rio::pmd
