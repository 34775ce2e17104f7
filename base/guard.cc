#include "base/guard.hpp"

#include <new>

#include "base/log.hpp"

namespace rio::base {

int end_exception(const Boundary& boundary) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    log_error("%s", boundary.out_of_memory);
    return -ENOMEM;
  } catch (...) {
    log_error("%s", boundary.unexpected);
    return boundary.unexpected_rc;
  }
}

}  // namespace rio::base
