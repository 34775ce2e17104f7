#include <rte_common.h>
#include <rte_log.h>

#include "base/log.hpp"

namespace rio::pmd {
namespace {

int log_type = -1;

/// Lines of the driver go to EAL's log as type pmd.common.rio (--log-level=pmd.common.rio:debug).
void to_eal(base::LogLevel level, const char* text) noexcept {
  const uint32_t eal_level = level == base::LogLevel::kError     ? RTE_LOG_ERR
                             : level == base::LogLevel::kWarning ? RTE_LOG_WARNING
                                                                 : RTE_LOG_INFO;
  rte_log(eal_level, static_cast<uint32_t>(log_type), "RIO: %s\n", text);
}

}  // namespace

RTE_INIT(common_rio_log_init) {
  log_type = rte_log_register_type_and_pick_level("pmd.common.rio", RTE_LOG_NOTICE);
  if (log_type >= 0) {
    base::set_log_sink(to_eal);
  }
}

}  // namespace rio::pmd
