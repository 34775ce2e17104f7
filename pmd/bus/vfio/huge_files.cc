#include "pmd/bus/vfio/huge_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/folder.hpp"
#include "base/log.hpp"

namespace rio::pmd::vfio {

/// Where hugepages of 2 MiB are mounted; empty: nowhere.
std::string HugeFiles::folder() const {
  std::string text;
  (void)read_text(paths_.proc + "/mounts", &text, kernel_);
  std::istringstream mounts(text);
  std::string source;
  std::string folder;
  std::string type;
  std::string options;
  std::string rest;
  while (mounts >> source >> folder >> type >> options && std::getline(mounts, rest)) {
    if (type == "hugetlbfs" && (options + ",").find("pagesize=2M,") != std::string::npos) {
      return folder;
    }
  }
  return {};
}

int HugeFiles::create(size_t len_bytes, std::string* path, KernelFd* fd) {
  const std::string where = folder();
  if (where.empty()) {
    base::log_error(
        "%s: no file system with hugepages of 2 MiB is mounted: mkdir -p /dev/hugepages2M; mount "
        "-t hugetlbfs -o pagesize=2M none /dev/hugepages2M",
        card_.c_str());
    return -ENOENT;
  }
  int rc = -EEXIST;  // a process that was killed may have left files
  std::string name;
  while (rc == -EEXIST) {
    name = where + "/" + prefix() + std::to_string(next_++);
    rc = kernel_.create_file(name, len_bytes);
  }
  if (rc < 0) {
    base::log_error("%s: cannot create %s: %s: run with sudo, or use VFIO", card_.c_str(),
                    name.c_str(), std::strerror(-rc));
    return rc;
  }
  *fd = KernelFd(kernel_, rc);
  own_.push_back(name);
  *path = std::move(name);
  return 0;
}

void HugeFiles::remove(const std::string& path) {
  if (std::erase(own_, path) != 0) {
    (void)kernel_.remove_file(path);  // else it is removed at the next open
  }
}

void HugeFiles::remove_leftovers() {
  const std::string where = folder();
  for (const std::string& name : base::names_in(where)) {
    std::string path = where;
    path.append("/").append(name);
    if (!name.starts_with(prefix()) || std::find(own_.begin(), own_.end(), path) != own_.end()) {
      continue;
    }
    if (const int rc = kernel_.remove_file(path); rc != 0) {
      base::log_warning(
          "%s: cannot remove %s, which an earlier process left: %s: remove it by hand",
          card_.c_str(), path.c_str(), std::strerror(-rc));
    }
  }
}

}  // namespace rio::pmd::vfio
