#include "lib/ofi/event_queue.hpp"

#include <chrono>
#include <cstring>

namespace rio::ofi {
namespace {

ssize_t read_now(fid_eq* eq, uint32_t* event, void* out, size_t count, uint64_t flags) {
  return of<EventQueue>(eq).read(event, out, count, 0, flags);
}
ssize_t write_event(fid_eq* eq, uint32_t event, const void* bytes, size_t count, uint64_t) {
  const int rc = no_throw([&] {
    of<EventQueue>(eq).write(event, bytes, count);
    return 0;
  });
  return rc != 0 ? rc : static_cast<ssize_t>(count);
}

fi_ops_eq queue_ops = {sizeof(fi_ops_eq),
                       read_now,
                       kPlain<EventQueue, &EventQueue::read_error>,
                       write_event,
                       kPlain<EventQueue, &EventQueue::read>,
                       error_text};

}  // namespace

EventQueue::EventQueue(Used& fabric, void* user_context)
    : fid_eq{{FI_CLASS_EQ, user_context, &closing_ops<EventQueue>}, &queue_ops}, fabric_(fabric) {}

void EventQueue::write(uint32_t event, const void* bytes, size_t count, bool is_error) {
  const auto* const at = static_cast<const uint8_t*>(bytes);
  const std::lock_guard lock(mutex_);
  events_.push_back({event, std::vector<uint8_t>(at, at + count), is_error});
  news_.notify_one();
}

ssize_t EventQueue::read_error(fi_eq_err_entry* out, uint64_t) {
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

ssize_t EventQueue::read(uint32_t* event, void* out, size_t count, int timeout_ms, uint64_t flags) {
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
