/// @file
/// The user's options: those behind `--`, which the prompt's `set` takes as well.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/barrier/scheme.hpp"
#include "pmd/dev/types.hpp"

namespace rio::testpmd {

inline constexpr uint32_t kTransferBytesMax = 1u << 20;  ///< longest dedicated or rdma transfer
inline constexpr uint32_t kBurstMax = 128;

/// Where a received message is forwarded to.
enum class Topology : uint8_t {
  kLoop,     ///< out of the port that it came in
  kPaired,   ///< ports 0 and 1, 2 and 3, …
  kChained,  ///< the next port; the last one to the first
};

/// How a barrier is started.
enum class BarrierStart : uint8_t {
  kSlot,  ///< from its descriptor in a slot on the card
  kRing,  ///< by posting its descriptor each time
};

struct Options {
  std::string mode = "io";
  std::string size_text = "64";
  std::vector<uint32_t> sizes = {64};  ///< bytes, ascending
  uint32_t offset_bytes = 0;           ///< of payloads in their buffers, 0 to 4095
  uint32_t burst = 32;                 ///< 1 to kBurstMax
  double seconds = 0;                  ///< 0: no limit
  uint64_t count = 0;                  ///< messages for each port to send; 0: no limit
  double stats_period_s = 1;           ///< 0: no table
  bool verify = false;
  uint64_t seed = 1;
  uint64_t fault_seed = 0;
  double fault_rate = 0;  ///< 0: none; 0 to 1
  std::string json_file;
  Topology topology = Topology::kLoop;
  std::vector<unsigned> forward_lcores;    ///< empty: those nearest the cards
  uint32_t nb_cores = 0;                   ///< 0: by the mode
  uint32_t mailboxes = 0;                  ///< 0: 64 for one segment, 4 for several
  uint32_t flows = 256;                    ///< flowgen: for each port
  uint32_t queues = 0;                     ///< dedicated: for each port; 0: as many as can be
  uint32_t window = 64;                    ///< messages each port primes the circle with
  regs::DmaOp op = regs::DmaOp::kNwriteR;  ///< rdma; one of the first four
  std::vector<uint32_t> peers;  ///< destID for each port, barrier: of each rank; empty: by the
                                ///< wires
  uint32_t ranks = 0;           ///< barrier: members; 0: as many as there can be
  barrier::Scheme schedule = barrier::TwoWay{};
  uint32_t skew_us = 0;  ///< barrier: each member arrives up to this much later, by the seed
  BarrierStart via = BarrierStart::kSlot;
  bool interactive = false;
  std::string cmdline_file;
  bool auto_start = false;
  bool help = false;
  bool version = false;
};

/// One option. `set` gets a foreign value; @return 0 or -EINVAL with what is wrong in `error`.
struct OptionDef {
  const char* name;   ///< without the dashes
  const char* value;  ///< name of the value for the help, null if it takes none
  const char* help;
  int (*set)(Options& options, std::string_view value, std::string* error);
  bool at_prompt = true;         ///< the prompt's `set` takes it
  const char* letter = nullptr;  ///< "-i", null if it has none
};

/// All options, in the order of the help.
[[nodiscard]] std::span<const OptionDef> option_table();
[[nodiscard]] const OptionDef* find_option(std::string_view name);

/// Parse the options behind `--`. @param args without the program's name. Of an option that is
/// given twice the last one counts. @return 0, or -EINVAL with the cause and the remedy in `error`.
[[nodiscard]] int parse_options(std::span<const std::string_view> args, Options* out,
                                std::string* error);

/// Parse a size, or a sweep as dpdk-test-dma-perf has it: `first,last,step,ADD|MUL`.
/// @param text foreign. @param max_bytes largest size allowed, at least 1.
/// @param sizes ascending, at least one, each 1 to max_bytes.
/// @param error what is wrong and what would be right. @return 0 or -EINVAL.
[[nodiscard]] int parse_sizes(std::string_view text, uint32_t max_bytes,
                              std::vector<uint32_t>* sizes, std::string* error);

/// Find contradictions among options that are each right. @return 0 or -EINVAL.
[[nodiscard]] int check_options(const Options& options, std::string* error);

/// The whole of --help.
[[nodiscard]] std::string help_text();

}  // namespace rio::testpmd
