#include "lib/ofi/fi_counter.hpp"

#include "lib/msg/waiting.hpp"

namespace rio::ofi {
namespace {

uint64_t read(fid_cntr* cntr) {
  return of<FiCounter>(cntr).read();
}
uint64_t read_error(fid_cntr* cntr) {
  return of<FiCounter>(cntr).read_error();
}
int add(fid_cntr* cntr, uint64_t count) {
  FiCounter& self = of<FiCounter>(cntr);
  const msg::Guard guard(self.domain().port());
  self.add(count);
  return 0;
}
int add_error(fid_cntr* cntr, uint64_t count) {
  FiCounter& self = of<FiCounter>(cntr);
  const msg::Guard guard(self.domain().port());
  self.set_error(self.errors() + count);
  return 0;
}
int set(fid_cntr* cntr, uint64_t value) {
  FiCounter& self = of<FiCounter>(cntr);
  const msg::Guard guard(self.domain().port());
  self.set(value);
  return 0;
}
int set_error(fid_cntr* cntr, uint64_t value) {
  FiCounter& self = of<FiCounter>(cntr);
  const msg::Guard guard(self.domain().port());
  self.set_error(value);
  return 0;
}
int control(fid* fid, int command, void* out) {
  return of<FiCounter>(fid).waiter().control(command, out);
}
int wait(fid_cntr* cntr, uint64_t threshold, int timeout_ms) {
  return of<FiCounter>(cntr).wait(threshold, timeout_ms);
}

fi_ops object_ops = {
    sizeof(fi_ops), close_object<FiCounter>, no_bind, control, no_ops_open, nullptr, nullptr};
fi_ops_cntr counter_ops = {sizeof(fi_ops_cntr), read,     read_error, add, set, wait,
                           add_error,           set_error};

}  // namespace

FiCounter::FiCounter(Domain& domain, void* user_context)
    : fid_cntr{{FI_CLASS_CNTR, user_context, &object_ops}, &counter_ops}, domain_(domain) {}

uint64_t FiCounter::read() {
  const msg::Guard guard(domain_.port());
  domain_.progress();
  read_value_ = value_;
  return value_;
}

uint64_t FiCounter::read_error() {
  const msg::Guard guard(domain_.port());
  domain_.progress();
  read_errors_ = told_errors_ = errors_;
  return errors_;
}

int FiCounter::wait(uint64_t threshold, int timeout_ms) {
  uint64_t before = 0;
  {
    const msg::Guard guard(domain_.port());
    before = told_errors_;
  }
  const int rc = wait_.until(timeout_ms, [&] { return value_ >= threshold || errors_ != before; });
  const msg::Guard guard(domain_.port());
  if (value_ >= threshold) {
    return 0;
  }
  if (errors_ != before) {
    told_errors_ = errors_;
    return -FI_EAVAIL;
  }
  return rc < 0 ? rc : -FI_ETIMEDOUT;
}

int FiCounter::arm() {
  return wait_.arm([this] { return value_ != read_value_ || errors_ != read_errors_; });
}

int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** out, void* user_context) {
  return no_throw([&] {
    const bool known = attr == nullptr || (attr->events == FI_CNTR_EVENTS_COMP && attr->flags == 0);
    if (!known) {
      return -FI_EINVAL;
    }
    auto made = std::make_unique<FiCounter>(of<Domain>(domain), user_context);
    const int rc = attr == nullptr ? 0 : made->waiter().open(attr->wait_obj);
    if (rc == 0) {
      *out = made.release();
    }
    return rc;
  });
}

}  // namespace rio::ofi
