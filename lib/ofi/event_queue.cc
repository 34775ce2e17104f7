#include "lib/ofi/event_queue.hpp"

#include <chrono>
#include <cstring>

#include "lib/ofi/fi_fabric.hpp"

namespace rio::ofi {
namespace {

ssize_t read_now(fid_eq* eq, uint32_t* event, void* out, size_t count, uint64_t flags) {
  return of<EventQueue>(eq).read(event, out, count, flags, 0);
}
ssize_t read_later(fid_eq* eq, uint32_t* event, void* out, size_t count, int timeout_ms,
                   uint64_t flags) {
  return of<EventQueue>(eq).read(event, out, count, flags, timeout_ms);
}
ssize_t read_error(fid_eq* eq, fi_eq_err_entry* out, uint64_t) {
  return of<EventQueue>(eq).read_error(out);
}
ssize_t write_event(fid_eq* eq, uint32_t event, const void* bytes, size_t count, uint64_t) {
  const int rc = no_throw([&] {
    of<EventQueue>(eq).write(event, bytes, count);
    return 0;
  });
  return rc != 0 ? rc : static_cast<ssize_t>(count);
}
const char* error_text(fid_eq*, int error, const void*, char* out, size_t count) {
  const char* const text = fi_strerror(error);
  if (out != nullptr && count != 0) {
    out[0] = '\0';
    std::strncat(out, text, count - 1);
  }
  return text;
}

fi_ops object_ops = {
    sizeof(fi_ops), close_object<EventQueue>, no_bind, no_control, no_ops_open, nullptr, nullptr};
fi_ops_eq queue_ops = {sizeof(fi_ops_eq), read_now,   read_error,
                       write_event,       read_later, error_text};

}  // namespace

EventQueue::EventQueue(Used& fabric, void* user_context)
    : fid_eq{{FI_CLASS_EQ, user_context, &object_ops}, &queue_ops}, fabric_(fabric) {}

void EventQueue::write(uint32_t event, const void* bytes, size_t count) {
  const auto* const at = static_cast<const uint8_t*>(bytes);
  const std::lock_guard lock(mutex_);
  events_.push_back({event, std::vector<uint8_t>(at, at + count), false});
  news_.notify_one();
}

void EventQueue::write_error(const fi_eq_err_entry& error) {
  const auto* const at = reinterpret_cast<const uint8_t*>(&error);
  const std::lock_guard lock(mutex_);
  events_.push_back({0, std::vector<uint8_t>(at, at + sizeof(error)), true});
  news_.notify_one();
}

ssize_t EventQueue::read_error(fi_eq_err_entry* out) {
  const std::lock_guard lock(mutex_);
  if (events_.empty() || !events_.front().is_error) {
    return -FI_EAGAIN;
  }
  fi_eq_err_entry error;
  std::memcpy(&error, events_.front().bytes.data(), sizeof(error));
  events_.pop_front();
  error.err_data = out->err_data;  // the user's buffer, which stays as it is
  *out = error;
  return sizeof(error);
}

ssize_t EventQueue::read(uint32_t* event, void* out, size_t count, uint64_t flags, int timeout_ms) {
  std::unique_lock lock(mutex_);
  const auto there = [this] { return !events_.empty(); };
  if (timeout_ms < 0) {
    news_.wait(lock, there);
  } else if (!news_.wait_for(lock, std::chrono::milliseconds(timeout_ms), there)) {
    return -FI_EAGAIN;
  }
  const Event& first = events_.front();
  if (first.is_error) {
    return -FI_EAVAIL;
  }
  if (count < first.bytes.size()) {
    return -FI_ETOOSMALL;
  }
  *event = first.event;
  std::memcpy(out, first.bytes.data(), first.bytes.size());
  const auto size = static_cast<ssize_t>(first.bytes.size());
  if ((flags & FI_PEEK) == 0) {
    events_.pop_front();
  }
  return size;
}

int open_event_queue(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** out, void* user_context) {
  return no_throw([&] {
    if (attr != nullptr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC) {
      return -FI_ENOSYS;
    }
    *out = new EventQueue(of<FiFabric>(fabric), user_context);
    return 0;
  });
}

}  // namespace rio::ofi
