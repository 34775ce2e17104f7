/// @file
/// What a mode is: it makes the streams of a run. One mode a file: mode_NAME.cc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/testpmd/message_pool.hpp"
#include "apps/testpmd/options.hpp"
#include "apps/testpmd/stream.hpp"
#include "apps/testpmd/test_port.hpp"
#include "apps/testpmd/verifier.hpp"

namespace rio::testpmd {

/// The set-up that a mode makes streams from. Outlives them.
struct RunSetup {
  const Options& options;
  uint32_t size_bytes;
  std::span<const std::unique_ptr<TestPort>> ports;
  MessagePool& pool;
  Verifier& verifier;
};

/// A mode. Stateless; streams hold the state.
struct Mode {
  const char* name;
  const char* help;
  uint32_t max_bytes;      ///< largest --size
  bool takes_offset;       ///< --offset means something
  const char* latency_of;  ///< what the latency is, for the report; null if none is measured
  /// Check the options for this mode. @return 0 or -EINVAL, `error` names fault and remedy.
  int (*check)(const RunSetup& setup, std::string* error);
  /// @return 0, or -errno with a cause in `error`.
  int (*make_streams)(const RunSetup& setup, std::vector<std::unique_ptr<Stream>>* streams,
                      std::string* error);
};

[[nodiscard]] const Mode& io_mode();
[[nodiscard]] const Mode& txonly_mode();
[[nodiscard]] const Mode& rxonly_mode();
[[nodiscard]] const Mode& flowgen_mode();
[[nodiscard]] const Mode& pingpong_mode();
[[nodiscard]] const Mode& dedicated_mode();
[[nodiscard]] const Mode& doorbell_mode();
[[nodiscard]] const Mode& rdma_mode();

/// All modes, in the order of the help.
[[nodiscard]] std::span<const Mode* const> mode_table();
[[nodiscard]] const Mode* find_mode(std::string_view name);

}  // namespace rio::testpmd
