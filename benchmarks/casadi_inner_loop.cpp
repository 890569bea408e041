// A function that CasADi wrote as C, in a bare C++ loop: a child process of inner_loops.py.
//
//     casadi_inner_loop LIBRARY STATES WIDTH OFFSET...
//
// LIBRARY holds the function f. STATES: rows of WIDTH doubles; argument k of f starts at OFFSET k of a row.
// Commands as in pin_inner_loop.cpp.

#include <chrono>
#include <dlfcn.h>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

using Call = int (*)(const double **, double **, long long *, double *, int);
using Work = int (*)(long long *, long long *, long long *, long long *);
using Sparsity = const long long * (*)(long long);

int main(int many, char ** arguments) {
  void * library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    std::cerr << dlerror() << std::endl;
    return 1;
  }
  const auto call = reinterpret_cast<Call>(dlsym(library, "f"));
  const auto work = reinterpret_cast<Work>(dlsym(library, "f_work"));
  const auto sparsity = reinterpret_cast<Sparsity>(dlsym(library, "f_sparsity_out"));
  const std::size_t width = std::stoul(arguments[3]);
  long long n_arg, n_res, n_iw, n_w;
  work(&n_arg, &n_res, &n_iw, &n_w);
  std::vector<const double *> arg(n_arg);
  std::vector<double *> res(n_res);
  std::vector<long long> iw(n_iw);
  const long long * shape = sparsity(0);  // rows, columns, starts of the columns or 1 for dense
  const std::size_t size = shape[2] == 1 ? shape[0] * shape[1] : shape[2 + shape[1]];
  std::vector<double> w(n_w), out(size), states, row(width);
  std::ifstream file(arguments[2], std::ios::binary);
  while (file.read(reinterpret_cast<char *>(row.data()), width * sizeof(double)))
    states.insert(states.end(), row.begin(), row.end());
  const std::size_t rows = states.size() / width;
  res[0] = out.data();

  std::vector<std::size_t> offset;
  for (int i = 4; i < many; ++i) offset.push_back(std::stoul(arguments[i]));
  std::string word;
  while (std::cin >> word) {
    const bool show = word == "show";
    if (show) std::cin >> word;
    std::size_t first, count = 1;
    std::cin >> first;
    if (!show) std::cin >> count;
    std::size_t k = first % rows;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t n = 0; n < count; ++n) {
      for (std::size_t i = 0; i < offset.size(); ++i) arg[i] = states.data() + k * width + offset[i];
      call(arg.data(), res.data(), iw.data(), w.data(), 0);
      if (++k == rows) k = 0;
    }
    const auto stop = std::chrono::steady_clock::now();
    if (!show) {
      std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(stop - start).count() << std::endl;
      continue;
    }
    for (double x : out) std::cout << std::setprecision(17) << x << ' ';
    std::cout << std::endl;
  }
}
