#include "fpga/model/core/host_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rio::model {

bool HostPort::find(uint64_t iova, bool written, HostWindow* window) {
  return memory_->find(iova, window) && (written ? window->writable : window->readable);
}

void HostPort::refuse(uint64_t iova) {
  first_refused_ = refused_++ == 0 ? iova : first_refused_;
}

uint8_t* HostPort::ring_memory(uint64_t iova, uint64_t len, bool written) {
  HostWindow window;
  if (!memory_->find_whole(iova, len, &window) || !window.holds(iova, len) ||
      !(written ? window.writable : window.readable)) {
    refuse(iova);
    return nullptr;
  }
  return window.at(iova);
}

uint8_t* HostPort::look_up(uint64_t iova, uint64_t len, HostWindow* window) {
  HostWindow found;
  if (!find(iova, window == &write_window_, &found) || !found.holds(iova, len)) {
    return nullptr;
  }
  if (!(posting_ && window == &write_window_) && !memory_->is_silent()) {
    *window = found;
  }
  return found.at(iova);
}

void HostPort::forget() {
  generation_ = memory_->generation();
  read_window_ = {};
  write_window_ = {};
  large_windows_[0] = {};
  large_windows_[1] = {};
}

uint8_t* HostPort::large(uint64_t iova, uint64_t len, bool written) {
  if (written && posting_) {
    return nullptr;
  }
  if (!is_in_large_window(iova, len, written)) {
    HostWindow window;
    if (!find(iova, written, &window) || !window.holds(iova, len)) {
      return nullptr;
    }
    if (memory_->is_silent()) {
      return window.at(iova);
    }
    large_window(written) = window;
  }
  return large_window(written).at(iova);
}

/// Call `fn(va, len)` for each piece of [iova, iova + len). @return false: a byte is not mapped.
template <class Fn>
bool HostPort::each_piece(uint64_t iova, uint64_t len, bool written, Fn fn) {
  if (is_in_large_window(iova, len, written)) [[likely]] {
    fn(large_window(written).at(iova), len);
    return true;
  }
  while (len > 0) {
    HostWindow window;
    if (!find(iova, written, &window)) {
      refuse(iova);
      return false;
    }
    if (!memory_->is_silent()) {
      large_window(written) = window;
    }
    const uint64_t part = std::min(len, window.len_bytes - (iova - window.iova));
    fn(window.at(iova), part);
    iova += part;
    len -= part;
  }
  return true;
}

bool HostPort::mapped(uint64_t iova, uint64_t len) {
  return each_piece(iova, len, false, [](const uint8_t*, uint64_t) {});
}

bool HostPort::read(uint64_t iova, void* to, uint64_t len) {
  auto* out = static_cast<uint8_t*>(to);
  return each_piece(iova, len, false, [&out](const uint8_t* from, uint64_t part) {
    std::memcpy(out, from, part);
    out += part;
  });
}

void HostPort::write(uint64_t iova, const void* from, uint64_t len, bool relaxed) {
  if (!posting_) {
    write_now(iova, from, len);
    return;
  }
  relaxed_ = relaxed ? std::min(relaxed_, posted_.size()) : 0;
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (uint64_t at = 0; at < len; at += 64) {
    post(iova + at, bytes + at, static_cast<uint32_t>(std::min<uint64_t>(64, len - at)), false);
    if (relaxed) {
      mix(++relaxed_);
    }
  }
}

/// Swap the write posted last with one of the last `count`, itself included.
void HostPort::mix(size_t count) {
  std::swap(posted_.back(), posted_[posted_.size() - 1 - rng_.below(static_cast<uint32_t>(count))]);
}

void HostPort::write_now(uint64_t iova, const void* from, uint64_t len) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  // A refused write is lost.
  static_cast<void>(each_piece(iova, len, true, [&bytes](uint8_t* to, uint64_t part) {
    std::memcpy(to, bytes, part);
    bytes += part;
  }));
}

void HostPort::post_completion(uint64_t iova, const uint32_t* words, uint32_t count) {
  relaxed_ = 0;
  for (uint32_t i = 0; i < count; ++i) {
    post(iova + 4ull * i, &words[i], 4, true);
    if (torn_) {
      mix(i + 1);
    }
  }
}

void HostPort::write_words(uint64_t iova, const uint32_t* words, uint32_t count) {
  if (posting_) {
    post_completion(iova, words, count);
    return;
  }
  HostWindow window;
  if (!find(iova, true, &window) || !window.holds(iova, 4ull * count)) {
    refuse(iova);
    return;
  }
  auto* const to = reinterpret_cast<uint32_t*>(window.at(iova));
  for (uint32_t i = 0; i < count; ++i) {
    // release: each word after those before it; pairs with the loads of RailWatch::read().
    __atomic_store_n(to + i, words[i], __ATOMIC_RELEASE);
  }
}

void HostPort::post(uint64_t iova, const void* from, uint32_t len, bool of_completion) {
  Posted& posted = posted_.emplace_back();
  posted.iova = iova;
  posted.len = len;
  posted.of_completion = of_completion;
  std::memcpy(posted.bytes, from, len);
}

void HostPort::drain(uint32_t count) {
  for (; count > 0 && !posted_.empty(); --count) {
    const Posted& posted = posted_.front();
    HostWindow window;
    if (posted.of_completion && find(posted.iova, true, &window) && window.holds(posted.iova, 4)) {
      uint32_t word = 0;
      std::memcpy(&word, posted.bytes, 4);
      // release: all earlier writes visible before the word; pairs with load_completion.
      __atomic_store_n(reinterpret_cast<uint32_t*>(window.at(posted.iova)), word, __ATOMIC_RELEASE);
    } else {
      write_now(posted.iova, posted.bytes, posted.len);
    }
    posted_.pop_front();
  }
}

}  // namespace rio::model
