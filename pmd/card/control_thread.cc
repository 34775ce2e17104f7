#include "pmd/card/control_thread.hpp"

#include <pthread.h>
#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.hpp"
#include "base/thread.hpp"

namespace rio::pmd {
namespace {

struct Job {
  const std::function<int()>* work;
  int result = 0;
  void run() { result = (*work)(); }
};

/// Logs that EAL could not start a thread. @param rc positive or negative: EAL's versions differ.
[[nodiscard]] int no_thread(int rc) {
  base::log_error("EAL: %s", base::why_no_thread(rc).c_str());
  return rc;
}

}  // namespace

int run_in_control_thread(const std::function<int()>& work) {
  Job job{.work = &work};
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
  rte_thread_t thread;
  const auto body = [](void* arg) -> uint32_t {
    static_cast<Job*>(arg)->run();
    return 0;
  };
  if (const int rc = rte_thread_create_control(&thread, "rio-setup", body, &job); rc != 0) {
    return no_thread(-std::abs(rc));
  }
  rte_thread_join(thread, nullptr);
#else
  pthread_t thread;
  const auto body = [](void* arg) -> void* {
    static_cast<Job*>(arg)->run();
    return nullptr;
  };
  if (const int rc = rte_ctrl_thread_create(&thread, "rio-setup", nullptr, body, &job); rc != 0) {
    return no_thread(-std::abs(rc));
  }
  pthread_join(thread, nullptr);
#endif
  return job.result;
}

}  // namespace rio::pmd
