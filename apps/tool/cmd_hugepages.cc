// rio-tool hugepages: show and set how many there are.
#include <algorithm>

#include "apps/tool/command.hpp"
#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/files.hpp"
#include "apps/tool/system/sysfs_writer.hpp"

namespace rio::tool {
namespace {

struct Options {
  std::string count = "show";
  std::string size = "2M";
  int node = -1;
};

int show(const GlobalOptions& context) {
  Json data = Json::array();
  TextTable table({"node", "size", "total", "free"});
  for (const HugepagePool& pool : read_hugepage_pools(context.paths)) {
    data.push_back({{"node", pool.node},
                    {"page_bytes", pool.page_bytes},
                    {"total", pool.total},
                    {"free", pool.free}});
    table.add({pool.node < 0 ? "all" : std::to_string(pool.node), size_text(pool.page_bytes),
               std::to_string(pool.total), std::to_string(pool.free)});
  }
  return print_result(context, data,
                      table.empty() ? "this kernel has no hugepages\n" : table.text());
}

/// The kernel would take all memory that it can get before it gives up.
bool more_than_memory(const GlobalOptions& context, uint64_t count, uint64_t page_bytes) {
  const std::string total = field_of(text_of(context.paths.proc + "/meminfo"), "MemTotal");
  const auto kib = parse_number(total.substr(0, total.find(' ')));
  return kib && count > *kib / (page_bytes >> 10);
}

/// Compare the kernel's count with the wanted one. @return kExitOk, or kExitFailed, said on stderr.
int check_count(uint64_t count, uint64_t now, uint64_t page_bytes) {
  const std::string pages = " hugepages of " + size_text(page_bytes);
  if (now < count) {
    return complain("asked for " + std::to_string(count) + pages + ", the kernel found room for " +
                        std::to_string(now),
                    "memory is in pieces: echo 1 > /proc/sys/vm/compact_memory and once more, or "
                    "ask for them at boot: hugepages=" +
                        std::to_string(count) + " on the kernel's command line");
  }
  if (now > count) {
    return complain("asked for " + std::to_string(count) + pages + ", " + std::to_string(now) +
                        " stay: programs or their files have them",
                    "grep -l huge /proc/*/maps names the programs; rio-tool doctor the files of "
                    "dead ones");
  }
  return kExitOk;
}

int set(const GlobalOptions& context, const Options& options, uint64_t count, uint64_t page_bytes) {
  const auto pools = read_hugepage_pools(context.paths);
  const auto pool = std::find_if(pools.begin(), pools.end(), [&](const HugepagePool& one) {
    return one.page_bytes == page_bytes && one.node == options.node;
  });
  if (pool == pools.end()) {
    const std::string where = options.node < 0 ? "" : " on node " + std::to_string(options.node);
    return complain("this machine has no pool of hugepages of " + size_text(page_bytes) + where,
                    "rio-tool hugepages show lists those that it has");
  }
  if (more_than_memory(context, count, page_bytes)) {
    return complain(std::to_string(count) + " hugepages of " + size_text(page_bytes) +
                        " are more than this machine's memory",
                    "ask for fewer: grep MemTotal /proc/meminfo says what there is");
  }
  SysfsWriter writer(context);
  const std::string path = pool->folder + "/nr_hugepages";
  if (writer.write(path, std::to_string(count)) != 0) {
    return kExitFailed;
  }
  const uint64_t now = context.dry_run ? count : number_of(path).value_or(0);
  if (const int code = check_count(count, now, page_bytes); code != kExitOk) {
    return code;
  }
  return print_result(context,
                      {{"node", pool->node},
                       {"page_bytes", page_bytes},
                       {"before", pool->total},
                       {"after", now},
                       {"writes", writer.data()},
                       {"done", !context.dry_run}},
                      context.dry_run ? writer.text()
                                      : std::to_string(pool->total) + " -> " + std::to_string(now) +
                                            " hugepages of " + size_text(page_bytes) + "\n");
}

int hugepages(const GlobalOptions& context, Options& options) {
  if (options.count == "show") {
    return show(context);
  }
  const auto count = parse_number(options.count);
  const auto page_bytes = parse_size(options.size);
  if (!count || !page_bytes) {
    return complain(!count ? "\"" + options.count + "\" is no number of hugepages"
                           : "\"" + options.size + "\" is no size of a hugepage",
                    "for example: rio-tool hugepages --size 2M 64", kExitUsage);
  }
  return set(context, options, *count, *page_bytes);
}

}  // namespace

void add_hugepages(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] =
      add_command(app, context, "hugepages", "Show or set how many hugepages there are",
                  "Until the next boot; for longer: hugepages=64 on the kernel's command line.\n"
                  "Examples\n"
                  "  rio-tool hugepages show\n"
                  "  rio-tool hugepages 64                 64 pages of 2 MiB\n"
                  "  rio-tool hugepages --node 1 64",
                  hugepages);
  command.add_option("count", options.count, "How many there shall be, or show")
      ->type_name("COUNT|show");
  command.add_option("--size", options.size, "Size of a page, as 2M or 1G (default 2M)")
      ->type_name("SIZE");
  command.add_option("--node", options.node, "NUMA node; else the kernel spreads them")
      ->type_name("NODE")
      ->check(CLI::Range(0, 1023));
}

}  // namespace rio::tool
