#include "lib/ofi/fabric_calls.hpp"
#include "lib/ofi/info.hpp"
#include "lib/ofi/provider.hpp"

/// The entry that libfabric calls when it has loaded this library.
extern "C" FI_EXT_INI {
  rio::ofi::define_params();
  fi_provider& provider = rio::ofi::provider();
  provider.getinfo = rio::ofi::get_info;
  provider.fabric = rio::ofi::open_fabric;
  return &provider;
}
