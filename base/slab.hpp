/// @file
/// Objects of one type that come and go: memory is taken in pieces and kept.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace rio::base {

/// An object may say by recycle() itself how it becomes as new, or as good. One thread. All objects
/// are freed with the slab.
template <class Object>
class Slab {
 public:
  /// @return one as new; null: no memory.
  [[nodiscard]] Object* get() {
    if (free_.empty() && !grow()) {
      return nullptr;
    }
    Object* const object = free_.back();
    free_.pop_back();
    return object;
  }
  void put(Object* object) {
    if constexpr (requires { object->recycle(); }) {
      object->recycle();
    } else {
      std::destroy_at(object);
      std::construct_at(object);
    }
    free_.push_back(object);  // has room: grow()
  }
  /// Cold: all, those that are not given away too, which are as new.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& piece : pieces_) {
      for (size_t i = 0; i < kPiece; ++i) {
        visit(piece[i]);
      }
    }
  }
  /// Give the memory away, while some of its objects are still in use.
  [[nodiscard]] std::shared_ptr<void> leave() {
    free_.clear();
    return std::make_shared<decltype(pieces_)>(std::exchange(pieces_, {}));
  }

 private:
  static constexpr size_t kPiece = 64;

  bool grow() try {
    free_.reserve((pieces_.size() + 1) * kPiece);
    pieces_.push_back(std::make_unique<Object[]>(kPiece));
    for (size_t i = 0; i < kPiece; ++i) {
      free_.push_back(&pieces_.back()[i]);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  std::vector<std::unique_ptr<Object[]>> pieces_;
  std::vector<Object*> free_;
};

}  // namespace rio::base
