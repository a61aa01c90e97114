from .kernel_jobs import KernelJob as KernelJob, KernelJobs as KernelJobs
