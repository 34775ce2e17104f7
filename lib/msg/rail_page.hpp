/// @file
/// The counters of rails, as a port with several rails shows them to other programs of its user,
/// such as rio-tool top: a file in the user's folder (base/own_folder.hpp). The port writes it
/// every now and then while it makes progress; no thread does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "lib/msg/rail_stats.hpp"

namespace rio::msg {

/// The page of one port. One thread; the file is removed with the object, and by others once the
/// process has died.
class RailPage {
 public:
  RailPage() = default;
  ~RailPage();
  RailPage(const RailPage&) = delete;
  RailPage& operator=(const RailPage&) = delete;

  /// Make the file. Control path. @param dest_id of the port. @param cards names of 1 to kRailsMax
  /// rails. @return 0, -errno (logged as a warning).
  [[nodiscard]] int create(uint32_t dest_id, std::span<const std::string> cards);
  [[nodiscard]] bool is_there() const { return map_.valid(); }
  /// Write the counts of all rails: a copy, without system calls. @param now_ns by
  /// base::now_ns(). @param stats as many as cards. @pre is_there().
  void write(uint64_t now_ns, std::span<const RailStats> stats);

 private:
  base::Fd file_;  // locked as long as the process lives
  base::Mapping map_;
  std::string path_;
  int pid_ = 0;  // of the process that has made it
};

/// A port with several rails, as its program shows it.
struct PortRails {
  struct Row {
    std::string card;
    RailStats stats;
  };
  uint32_t pid = 0;
  uint32_t dest_id = 0;
  uint64_t time_ns = 0;  ///< of the counts, by base::now_ns(); 0: none were written yet
  std::vector<Row> rails;
};

/// Read the pages of all ports of this user's programs that live, in the order of their names.
/// Removes those of programs that have died. Control path, any thread.
[[nodiscard]] std::vector<PortRails> read_rail_pages();

}  // namespace rio::msg
