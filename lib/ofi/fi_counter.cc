#include "lib/ofi/fi_counter.hpp"

namespace rio::ofi {
namespace {

using Self = FiCounter;
fi_ops object_ops = object_calls(close_object<Self>, kNoCall, kPlain<Self, &Self::control>);
fi_ops_cntr counter_ops = {sizeof(fi_ops_cntr),
                           kPlain<Self, &Self::read>,
                           kPlain<Self, &Self::read_error>,
                           kGuarded<Self, &Self::add>,
                           kGuarded<Self, &Self::set>,
                           kPlain<Self, &Self::wait>,
                           kGuarded<Self, &Self::add_told_error>,
                           kGuarded<Self, &Self::set_error>};

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
