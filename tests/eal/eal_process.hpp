/// @file
/// An EAL process for a test: each test program is one.
#pragma once

#include <string>
#include <vector>

namespace rio::test {

/// The source of EAL's memory.
enum class EalMode {
  kNoHuge,    ///< ordinary memory
  kInMemory,  ///< hugepages that no file names
  kShared,    ///< hugepages that secondary processes find
};

/// Exit code that meson takes for "skipped".
inline constexpr int kSkipped = 77;

/// Takes --eal=no-huge|in-memory|shared from the command line. @return the mode, default kNoHuge.
[[nodiscard]] EalMode take_mode(int* argc, char** argv);

/// Checks for enough hugepages for `mode`. @return "", or what is missing.
[[nodiscard]] std::string why_not(EalMode mode, unsigned megabytes);

/// Starts EAL on any CPU that this process may use, not pinned, and without PCI devices unless they
/// are those of a fake tree (SYSFS_PCI_DEVICES). @param prefix unique among tests that run at once.
/// @param lcore the only lcore; processes that use each other's mbufs need different ones. @return
/// the result of rte_eal_init().
int start_eal(EalMode mode, const std::string& prefix, const std::vector<std::string>& more,
              unsigned lcore = 0);

/// Calls rte_eal_cleanup, and removes EAL's files from its run-time folder (primary only).
void end_eal();

/// A prefix that no other process uses now.
[[nodiscard]] std::string own_prefix(const std::string& what);

/// main() of a test program that is an EAL process: skips itself if there is no memory for the mode
/// on its command line. @param name as for own_prefix(). @param more options for EAL. @param before
/// called before EAL scans the system. @return the exit code.
int run_tests_in_eal(int argc, char** argv, const std::string& name,
                     const std::vector<std::string>& more, void (*before)() = nullptr);

/// Captures EAL's log while it lives.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  [[nodiscard]] std::string text();

 private:
  char* bytes_ = nullptr;
  size_t len_ = 0;
  void* file_ = nullptr;
};

}  // namespace rio::test
