// The kernels' own threads. They start at first use and end with the interpreter. A forked child starts new ones.
#include "base/workers.hpp"

#include "base/calls.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <pthread.h>

#include <csignal>
#endif

namespace pyparq {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto LOOK_EVERY = std::chrono::milliseconds(50);
constexpr auto LONGEST_WAIT = std::chrono::seconds(10);  // at the end, for callers to come back
constexpr size_t MOST_THREADS = 256;

// What one call of `run_parallel` has to do.
struct Job {
    const size_t tasks;
    const std::function<void(size_t)>& run;
    std::atomic<size_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr error;  // the first; guarded by the pool's lock, like `helping`
    size_t helping = 0;        // threads of the pool that are at it
    std::condition_variable done;
    Clock::time_point looked = Clock::now();  // the caller's
};

// Guards all that threads share. Made anew in a forked child, where it may be locked for ever and the threads are missing;
// never freed, as threads may outlive what C++ frees when the process ends.
struct Pool {
    std::mutex lock;
    std::condition_variable work;
    std::vector<Job*> running;
    std::deque<Job*> wanted;  // a job stands here once for each thread that may help it
    std::vector<std::thread> threads;
    size_t idle = 0;
    bool closed = false;  // the interpreter is going: no threads any more
};

Pool* pool = nullptr;
thread_local Job* current = nullptr;  // the job that this thread works for
thread_local bool calling = false;    // and whether it is the one that asked for it

void keep_error(Job& job, std::exception_ptr error) {
    const std::lock_guard guard(pool->lock);
    if (!job.error) job.error = std::move(error);
    job.stop = true;
}

// Lets Python handle signals, on the thread that asked for the job.
void look_around(Job& job) {
    job.looked = Clock::now();
    {
        const std::lock_guard guard(pool->lock);
        if (pool->closed) return;
    }
    const nb::gil_scoped_acquire gil;
    try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        nb::module_::import_("pyparq.runtime.threads").attr("check_stopped")();
    } catch (...) {
        keep_error(job, std::current_exception());
    }
}

bool time_to_look(const Job& job) { return calling && Clock::now() - job.looked >= LOOK_EVERY; }

void work_on(Job& job) {
    Job* const outer = std::exchange(current, &job);
    while (!stop_requested()) {
        const size_t task = job.next.fetch_add(1, std::memory_order_relaxed);
        if (task >= job.tasks) break;
        try {
            job.run(task);
        } catch (...) {
            keep_error(job, std::current_exception());
        }
    }
    current = outer;
}

void help(Pool& pool) {
#ifndef _WIN32
    sigset_t all;  // Python's handlers run on its own threads, which wake up for them
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
#endif
    std::unique_lock guard(pool.lock);
    for (;;) {
        ++pool.idle;
        pool.work.wait(guard, [&] { return pool.closed || !pool.wanted.empty(); });
        --pool.idle;
        if (pool.wanted.empty()) return;
        Job& job = *pool.wanted.front();
        pool.wanted.pop_front();
        ++job.helping;
        guard.unlock();
        work_on(job);
        guard.lock();
        if (--job.helping == 0) job.done.notify_one();
    }
}

void ask_for_help(Job& job, size_t helpers) {
    const std::lock_guard guard(pool->lock);
    if (pool->closed) return;
    try {
        for (size_t i = 0; i < helpers; ++i) pool->wanted.push_back(&job);
        while (pool->idle < pool->wanted.size() && pool->threads.size() < std::min(helpers, MOST_THREADS))
            pool->threads.emplace_back(help, std::ref(*pool));
    } catch (const std::exception&) {  // no thread or no memory: it goes without. wait_for_helpers() takes the job out
    }
    pool->work.notify_all();
}

// Until no other thread is at the job, and none will be.
void wait_for_helpers(Job& job) {
    std::unique_lock guard(pool->lock);
    std::erase(pool->wanted, &job);
    while (job.helping > 0) {
        if (job.done.wait_for(guard, LOOK_EVERY) == std::cv_status::timeout && !job.stop) {
            guard.unlock();
            look_around(job);
            guard.lock();
        }
    }
}

// Gives up the GIL where this thread has it.
class WithoutGil {
  public:
    WithoutGil() {
        const PyGILState_STATE before = PyGILState_Ensure();
        PyGILState_Release(before);
        if (before == PyGILState_LOCKED) state_ = PyEval_SaveThread();
    }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;
    ~WithoutGil() {
        if (state_ != nullptr) take_gil(state_);
    }

  private:
    PyThreadState* state_ = nullptr;
};

// Has a job known to the pool until its caller is back in Python.
class Running {
  public:
    explicit Running(Job& job) : job_(job) {
        const std::lock_guard guard(pool->lock);
        pool->running.push_back(&job);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        const std::lock_guard guard(pool->lock);
        std::erase(pool->running, &job_);
    }

  private:
    Job& job_;
};

void run_job(size_t tasks, size_t threads, const std::function<void(size_t)>& run) {
    Job job{.tasks = tasks, .run = run};
    {
        const Running running(job);
        const WithoutGil nogil;
        const size_t helpers = std::min(threads, tasks) - 1;
        if (helpers > 0) ask_for_help(job, helpers);
        calling = true;
        work_on(job);
        calling = false;
        if (helpers > 0) wait_for_helpers(job);
    }
    if (job.error) std::rethrow_exception(job.error);
}

bool all_done() {
    const std::lock_guard guard(pool->lock);
    return pool->running.empty();
}

#ifndef _WIN32
void begin_anew() { pool = new Pool; }
#endif

}  // namespace

// Called before the interpreter exits. Work that other Python threads have requested and that is not done then fails.
void close_pool() {
    std::vector<std::thread> threads;
    {
        const std::lock_guard guard(pool->lock);
        pool->closed = true;
        threads.swap(pool->threads);
        for (Job* job : pool->running) {
            if (!job->error) job->error = std::make_exception_ptr(KernelError("the interpreter is shutting down"));
            job->stop = true;
        }
    }
    pool->work.notify_all();
    const NoGil nogil;  // their tasks may need it
    for (std::thread& thread : threads) thread.join();
    // A caller that asks for the GIL after the exit would be ended in the middle of C++, and the process aborted with it.
    const auto until = Clock::now() + LONGEST_WAIT;
    while (!all_done() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool stop_requested() {
    if (current == nullptr) return false;
    if (!current->stop && time_to_look(*current)) look_around(*current);
    return current->stop.load(std::memory_order_relaxed);
}

void run_parallel(size_t tasks, size_t threads, const std::function<void(size_t)>& run) {
    if (tasks == 0) return;
    if (current == nullptr) return run_job(tasks, std::max<size_t>(threads, 1), run);
    for (size_t task = 0; task < tasks && !stop_requested(); ++task) run(task);
}

void begin_workers() {
    pool = new Pool;
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, begin_anew);
#endif
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close_pool));
}

void run_parallel_python(int64_t tasks, int64_t threads, const nb::callable& run) {
    run_parallel(checked_count(tasks, "tasks"), checked_count(threads, "threads"), [&](size_t task) {
        const nb::gil_scoped_acquire gil;
        run(task);
    });
}

}  // namespace pyparq
