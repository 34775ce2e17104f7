/// @file
/// fi_eq_open(): events of control calls. Address vectors report their insertions; users write the
/// others.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "lib/ofi/fid.hpp"

namespace rio::ofi {

/// An event queue. Any thread.
class EventQueue : public fid_eq, public Used {
 public:
  using Fid = fid_eq;

  EventQueue(Used& fabric, void* user_context);

  /// As fi_eq_write(). @param is_error the bytes are a fi_eq_err_entry, which fi_eq_readerr()
  /// returns after the events before it.
  void write(uint32_t event, const void* bytes, size_t count, bool is_error = false);
  /// As fi_eq_readerr().
  [[nodiscard]] ssize_t read_error(fi_eq_err_entry* out, uint64_t flags);
  /// As fi_eq_read() and fi_eq_sread(). @param timeout_ms negative: for ever.
  [[nodiscard]] ssize_t read(uint32_t* event, void* out, size_t count, int timeout_ms,
                             uint64_t flags);

 private:
  struct Event {
    uint32_t event;
    std::vector<uint8_t> bytes;  // of an error: a fi_eq_err_entry
    bool is_error;
  };

  Use fabric_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Event> events_;
};

int open_event_queue(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** out, void* user_context);

}  // namespace rio::ofi
