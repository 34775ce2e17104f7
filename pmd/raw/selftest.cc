#include "pmd/raw/ops.hpp"

namespace rio::pmd {
int selftest(uint16_t /*dev_id*/) { return -ENOTSUP; }
}  // namespace rio::pmd
