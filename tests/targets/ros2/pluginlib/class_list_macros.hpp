#pragma once
#include <memory>
#define PLUGINLIB_EXPORT_CLASS(TYPE, BASE) std::unique_ptr<BASE> made() { return std::make_unique<TYPE>(); }
