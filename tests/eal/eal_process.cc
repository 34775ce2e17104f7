#include "tests/eal/eal_process.hpp"

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace rio::test {
namespace {

constexpr const char* kModeFlag = "--eal=";

/// "0@(0-1,4)": one lcore that may run on all of the process's CPUs; -l 0 would pin every test to
/// CPU 0.
std::string lcores(unsigned lcore) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cpus.append(cpus.empty() ? "" : ",").append(std::to_string(cpu));
    }
  }
  return std::to_string(lcore) + "@(" + cpus + ")";
}

}  // namespace

EalMode take_mode(int* argc, char** argv) {
  EalMode mode = EalMode::kNoHuge;
  int kept = 0;
  for (int i = 0; i < *argc; ++i) {
    if (std::strncmp(argv[i], kModeFlag, std::strlen(kModeFlag)) != 0) {
      argv[kept++] = argv[i];
      continue;
    }
    const std::string value = argv[i] + std::strlen(kModeFlag);
    mode = value == "in-memory" ? EalMode::kInMemory
           : value == "shared"  ? EalMode::kShared
                                : EalMode::kNoHuge;
  }
  *argc = kept;
  return mode;
}

std::string why_not(EalMode mode, unsigned megabytes) {
  if (mode == EalMode::kNoHuge) {
    return "";
  }
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  unsigned pages = 0;
  if (!(file >> pages) || pages < megabytes / 2) {
    return std::to_string(pages) + " free hugepages of 2 MiB, " + std::to_string(megabytes / 2) +
           " wanted: echo 256 >/proc/sys/vm/nr_hugepages";
  }
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" hugetlbfs ") != std::string::npos) {
      return "";
    }
  }
  return "hugetlbfs is not mounted: mount -t hugetlbfs none /dev/hugepages";
}

std::string own_prefix(const std::string& what) {
  return "rio-test-" + what + "-" + std::to_string(getpid());
}

int start_eal(EalMode mode, const std::string& prefix, const std::vector<std::string>& more,
              unsigned lcore) {
  std::vector<std::string> args = {"test",           "--lcores",      lcores(lcore),
                                   "--iova-mode=va", "--file-prefix", prefix};
  switch (mode) {
    case EalMode::kNoHuge:
      args.insert(args.end(), {"--no-huge", "-m", "256"});
      break;
    case EalMode::kInMemory:
      args.insert(args.end(), {"--in-memory", "-m", "64"});
      break;
    case EalMode::kShared:
      break;
  }
  args.insert(args.end(), more.begin(), more.end());
  if (std::getenv("SYSFS_PCI_DEVICES") == nullptr) {  // leave the machine's own devices alone
    args.emplace_back("--no-pci");
  }
  std::vector<char*> argv;
  argv.reserve(args.size() + 1);
  for (std::string& arg : args) {
    argv.push_back(arg.data());
  }
  argv.push_back(nullptr);
  return rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data());
}

void end_eal() {
  const bool primary = rte_eal_process_type() == RTE_PROC_PRIMARY;
  const std::string folder = rte_eal_get_runtime_dir();
  rte_eal_cleanup();
  if (primary && folder.find("rio-test-") != std::string::npos) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
}

int run_tests_in_eal(int argc, char** argv, const std::string& name,
                     const std::vector<std::string>& more, void (*before)()) {
  constexpr unsigned kMegabytes = 64;
  const EalMode mode = take_mode(&argc, argv);
  testing::InitGoogleTest(&argc, argv);
  if (const std::string why = why_not(mode, kMegabytes); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return kSkipped;
  }
  if (before != nullptr) {
    before();
  }
  if (start_eal(mode, own_prefix(name), more) < 0) {
    return 1;
  }
  const int rc = RUN_ALL_TESTS();
  end_eal();
  return rc;
}

LogCapture::LogCapture() {
  auto* const file = open_memstream(&bytes_, &len_);
  file_ = file;
  rte_openlog_stream(file);
}

LogCapture::~LogCapture() {
  rte_openlog_stream(nullptr);
  std::fclose(static_cast<std::FILE*>(file_));
  std::free(bytes_);
}

std::string LogCapture::text() {
  std::fflush(static_cast<std::FILE*>(file_));
  return bytes_ == nullptr ? "" : std::string(bytes_, len_);
}

}  // namespace rio::test
